"""What the broker knows about incoming events: the ends of the log, and the workers of the group.

Asked only when an administrator opens the page; the console works without a broker.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

TIMEOUT: Final = 5.0
"""Seconds for each of the two questions."""


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

    async def read(self) -> BrokerAnswer:
        """Ask the broker."""
        ends, workers = await asyncio.gather(self._ends(), self._workers())
        return BrokerAnswer(ends, workers)

    async def _ends(self) -> dict[int, int] | None:
        consumer = AIOKafkaConsumer(**self._options)
        try:
            async with asyncio.timeout(TIMEOUT):
                await consumer.start()
                if self._topic not in await consumer.topics():
                    return None
                numbers = consumer.partitions_for_topic(self._topic) or set()
                places = [TopicPartition(self._topic, number) for number in sorted(numbers)]
                found = await consumer.end_offsets(places)
                return {place.partition: offset for place, offset in found.items()}
        except (KafkaError, TimeoutError, OSError):
            return None
        finally:
            await consumer.stop()

    async def _workers(self) -> list[str] | None:
        client = AIOKafkaAdminClient(**self._options)
        try:
            async with asyncio.timeout(TIMEOUT):
                await client.start()
                answers = await client.describe_consumer_groups([self._group])
        except (KafkaError, TimeoutError, OSError):
            return None
        finally:
            await client.close()
        members = [member for answer in answers for group in answer.groups for member in group[5]]
        return sorted(_name(*member[:3]) for member in members)


def _name(member_id: str, client_id: str, host: str) -> str:
    """What the broker says about a member; the embedded one only knows its id."""
    address = host.lstrip("/")
    return f"{client_id or member_id} at {address}" if address else client_id or member_id
