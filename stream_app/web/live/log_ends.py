"""What the broker knows about incoming events: the ends of the log, and the workers of the group.

Asked only when an administrator opens the page; the console works without a broker. The connections
are kept, because opening them takes most of the page's time.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

TIMEOUT: Final = 5.0
"""Seconds for each of the two questions."""
_FAILURES: Final = (KafkaError, TimeoutError, OSError)


@dataclass(frozen=True, slots=True)
class BrokerAnswer:
    """``ends``: next offset by partition, None without an answer; ``workers``: None likewise."""

    ends: dict[int, int] | None
    workers: list[str] | None


class LogEnds:
    """Reads the ends of one topic and the members of one group; creates nothing."""

    def __init__(self, options: dict[str, Any], topic: str, group: str) -> None:
        self._options = options
        self._topic = topic
        self._group = group
        self._consumer: AIOKafkaConsumer | None = None
        self._admin: AIOKafkaAdminClient | None = None
        self._reading: asyncio.Task[BrokerAnswer] | None = None

    async def read(self) -> BrokerAnswer:
        """Ask the broker; pages that are opened meanwhile get the same answer."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        return await asyncio.shield(self._reading)

    async def close(self) -> None:
        """Close the connections; the next question opens new ones."""
        consumer, self._consumer = self._consumer, None
        admin, self._admin = self._admin, None
        with suppress(*_FAILURES):
            if consumer is not None:
                await consumer.stop()
        with suppress(*_FAILURES):
            if admin is not None:
                await admin.close()

    async def _read(self) -> BrokerAnswer:
        try:
            async with asyncio.timeout(TIMEOUT):
                workers = await self._workers()
        except _FAILURES:
            await self.close()
            return BrokerAnswer(None, None)
        try:
            async with asyncio.timeout(TIMEOUT):
                ends = await self._ends()
        except _FAILURES:
            await self.close()
            ends = None
        return BrokerAnswer(ends, workers)

    async def _ends(self) -> dict[int, int] | None:
        admin = await self._connected()
        topics = await admin.describe_topics()  # of all: asking for one would create it
        found = next((each for each in topics if each["topic"] == self._topic), None)
        if found is None or found["error_code"]:
            return None
        if self._consumer is None:
            self._consumer = AIOKafkaConsumer(**self._options, isolation_level="read_committed")
            await self._consumer.start()
        numbers = sorted(each["partition"] for each in found["partitions"])
        places = [TopicPartition(self._topic, number) for number in numbers]
        offsets = await self._consumer.end_offsets(places)
        return {place.partition: offset for place, offset in offsets.items()}

    async def _workers(self) -> list[str]:
        admin = await self._connected()
        answers = await admin.describe_consumer_groups([self._group])
        members = [member for answer in answers for group in answer.groups for member in group[5]]
        return sorted(_name(*member[:3]) for member in members)

    async def _connected(self) -> AIOKafkaAdminClient:
        if self._admin is None:
            self._admin = AIOKafkaAdminClient(**self._options)
            await self._admin.start()
        return self._admin


def _name(member_id: str, client_id: str, host: str) -> str:
    """What the broker says about a member; the embedded one only knows its id."""
    address = host.lstrip("/")
    return f"{client_id or member_id} at {address}" if address else client_id or member_id
