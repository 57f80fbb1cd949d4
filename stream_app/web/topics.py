"""Reads the topics of scores, alerts and actions into the hub, outside any consumer group.

The broker may be absent at start and come and go later: the hub says so to its clients and the
reader tries again, after 0.2 s, then twice as long each time, up to 5 s.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition

from stream_app.contracts.scores import Output, decode
from stream_app.errors import RapportError
from stream_app.store.reading.facts import Facts, look_up
from stream_app.store.repository import Store
from stream_app.web.live import ActionTold, Hub

log = structlog.get_logger(__name__)

FETCH_WAIT_MS: Final = 100
BATCH: Final = 500
LOOK_EVERY: Final = 2.0
"""Seconds between two looks whether the broker still answers and has kept its log."""
ANSWER_WITHIN: Final = 5.0
SHORTEST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 5.0
KNOWN_FOR: Final = 15.0
"""Facts are looked up again after so many seconds: a counsellor may join."""
KNOWN_SESSIONS: Final = 10_000

_action = msgspec.json.Decoder(ActionTold).decode


class LogChanged(RapportError):
    """The log has become shorter: the broker has lost it, or is another one."""


class FactsCache:
    """Who works in which session, looked up in the database and kept for a while."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, Facts]] = OrderedDict()

    async def of(self, session_ids: Iterable[str]) -> dict[str, Facts]:
        """Facts of these sessions; an unknown session has none.

        Raises:
            StoreUnavailable: the database does not answer.
        """
        now = self._clock()
        wanted = set(session_ids)
        found = {
            key: known[1]
            for key in wanted
            if (known := self._known.get(key)) is not None and now - known[0] < KNOWN_FOR
        }
        if missing := sorted(wanted - found.keys()):
            looked_up = await asyncio.to_thread(look_up, self._store, missing)
            for key in missing:
                found[key] = looked_up.get(key, Facts())
                if found[key].counsellors:  # until one has spoken, look again each time
                    self._keep(key, now, found[key])
        return found

    def _keep(self, key: str, now: float, facts: Facts) -> None:
        self._known.pop(key, None)
        self._known[key] = (now, facts)
        while len(self._known) > KNOWN_SESSIONS:
            self._known.popitem(last=False)


class TopicReader:
    """Keeps the hub fed until it is cancelled.

    Args:
        hub: is told what comes.
        store: knows whose session it is.
        topics: of turn scores, session scores and alerts.
        actions: the topic of people's actions.
        options: aiokafka's, to reach the brokers.
        declare: creates topics that are missing; asking for them might, with other partitions.
    """

    def __init__(
        self,
        hub: Hub,
        store: Store,
        topics: list[str],
        actions: str,
        options: dict[str, Any],
        declare: Callable[[], Awaitable[object]],
    ) -> None:
        self._hub = hub
        self._topics = [*topics, actions]
        self._actions = actions
        self._options = options
        self._store = store
        self._declare = declare

    async def run(self) -> None:
        """Read, and begin again whenever the broker or the database was away."""
        facts = FactsCache(self._store, asyncio.get_running_loop().time)
        pause = SHORTEST_PAUSE
        while True:
            reading = asyncio.create_task(self._read(facts))
            try:
                await asyncio.wait([reading])  # a cancellation inside it is not one of this task
            finally:
                reading.cancel()
            if self._hub.live:
                pause = SHORTEST_PAUSE
                self._hub.lost(datetime.now(UTC).isoformat())
                log.warning("live.lost", problem=_problem(reading))
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 2)

    async def _read(self, facts: FactsCache) -> None:
        await self._declare()
        consumer = AIOKafkaConsumer(
            *self._topics,
            **self._options,
            auto_offset_reset="latest",
            fetch_max_wait_ms=FETCH_WAIT_MS,
            request_timeout_ms=10_000,
        )
        try:
            await asyncio.wait_for(consumer.start(), ANSWER_WITHIN)
            await asyncio.wait_for(consumer.seek_to_end(), ANSWER_WITHIN)
            self._hub.found()
            log.info("live.reading", topics=self._topics)
            watching = asyncio.create_task(_watch(consumer))
            try:
                while not watching.done():
                    await self._batch(consumer, facts)
                watching.result()
            finally:
                watching.cancel()
                await asyncio.wait([watching])
        finally:
            await _stop(consumer)

    async def _batch(self, consumer: AIOKafkaConsumer, facts: FactsCache) -> None:
        fetched = await consumer.getmany(timeout_ms=500, max_records=BATCH)
        messages: list[Output | ActionTold] = []
        for records in fetched.values():
            for record in records:
                try:
                    told = record.topic == self._actions
                    messages.append(_action(record.value) if told else decode(record.value))
                except msgspec.MsgspecError as problem:
                    log.warning("live.unreadable", topic=record.topic, problem=str(problem)[:100])
        if not messages:
            return
        about = await facts.of(message.session_id for message in messages)
        for message in messages:
            known = about[message.session_id]
            if isinstance(message, ActionTold):
                self._hub.take_action(message, known)
            else:
                self._hub.take(message, known)


def _problem(reading: "asyncio.Task[None]") -> str:
    problem = None if reading.cancelled() else reading.exception()
    return f"{type(problem).__name__}: {problem}"[:200] if problem else "cancelled"


async def _stop(consumer: AIOKafkaConsumer) -> None:
    """Stop it; aiokafka 0.14 may end in a cancellation of its own and leave connections open."""
    stopping = asyncio.ensure_future(consumer.stop())
    await asyncio.wait([stopping], timeout=ANSWER_WITHIN)
    if not stopping.done() or stopping.cancelled() or stopping.exception() is not None:
        stopping.cancel()
        await consumer._client.close()  # noqa: SLF001  # stop() does nothing the second time


async def _watch(consumer: AIOKafkaConsumer) -> None:
    """Return never; raise when the broker does not answer, or its log is not the one we read.

    Ends are compared with earlier ends, not with positions: the embedded broker takes the first
    record of the last batch for the end.
    """
    before: dict[TopicPartition, int] = {}
    while True:
        partitions = list(consumer.assignment())
        ends = await asyncio.wait_for(consumer.end_offsets(partitions), ANSWER_WITHIN)
        if any(end < before.get(partition, end) for partition, end in ends.items()):
            raise LogChanged("the log ends before where it ended earlier")
        before = ends
        await asyncio.sleep(LOOK_EVERY)
