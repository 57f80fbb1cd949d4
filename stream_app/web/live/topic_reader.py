"""Feeds the topics of scores, alerts and people's actions to the hub, without a consumer group.

When the broker is unavailable, at the start or later, the hub tells its clients, and the reader
reconnects after 0.2 s, then with exponential backoff up to 5 s.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from msgspec import Struct

from stream_app.contracts.framing import unframed
from stream_app.contracts.interventions import Intervention, InterventionReceipt
from stream_app.contracts.scores import AlertAction
from stream_app.errors import RapportError
from stream_app.store.sessions.routing import SessionRouting, find_readable, read_routing
from stream_app.store.stream.repository import Store
from stream_app.web.live.live_hub import Hub, LiveEventKind

log = structlog.get_logger(__name__)

FETCH_WAIT_MS: Final = 100
BATCH: Final = 500
CHECK_SECONDS: Final = 2.0
"""Seconds between checks that the broker still answers and has not lost its log."""
BROKER_TIMEOUT: Final = 5.0
MIN_PAUSE: Final = 0.2
MAX_PAUSE: Final = 5.0
ROUTING_TTL: Final = 15.0
"""Seconds after which a session's routing is read again, as a counsellor may have joined."""
MAX_CACHED_SESSIONS: Final = 50_000
GATHER_SECONDS: Final = 0.2
"""Pause between two batches: larger ones cost less, and nobody sees the difference."""

Action = AlertAction | Intervention | InterventionReceipt
"""What a person or a desk did."""
_actions: msgspec.json.Decoder[Action] = msgspec.json.Decoder(Action)


class _About(Struct, frozen=True, tag_field="type"):
    """What a message of the workers is about; the rest is passed on as it is."""

    session_id: str


class _AboutTurn(_About, frozen=True, tag="turn_score"):
    pass


class _AboutSession(_About, frozen=True, tag="session_score"):
    pass


class _AboutAlert(_About, frozen=True, tag="alert"):
    pass


_about = msgspec.json.Decoder(_AboutTurn | _AboutSession | _AboutAlert).decode
_KINDS: Final[Mapping[type[_About], LiveEventKind]] = {
    _AboutTurn: LiveEventKind.TURN,
    _AboutSession: LiveEventKind.SESSION,
    _AboutAlert: LiveEventKind.ALERT,
}


class _Scored(Struct, frozen=True):
    """A message of a worker, not decoded."""

    kind: LiveEventKind
    session_id: str
    raw: bytes


class LogChanged(RapportError):
    """A partition has become shorter: the topic was recreated or the broker was replaced."""


class RoutingCache:
    """Caches each session's team, domain and counsellors from the database."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._cached: OrderedDict[str, tuple[float, SessionRouting]] = OrderedDict()

    async def get(self, session_ids: Iterable[str]) -> dict[str, SessionRouting]:
        """SessionRouting of these sessions; empty for unknown sessions.

        Raises:
            StoreUnavailable: the database does not answer.
        """
        now = self._clock()
        wanted = set(session_ids)
        found = {
            key: cached[1]
            for key in wanted
            if (cached := self._cached.get(key)) is not None and now - cached[0] < ROUTING_TTL
        }
        if missing := sorted(wanted - found.keys()):
            looked_up = await asyncio.to_thread(read_routing, self._store, missing)
            for key in missing:
                found[key] = looked_up.get(key, SessionRouting())
                if found[key].readers:  # not cached until a counsellor has spoken
                    self._keep(key, now, found[key])
        return found

    def forget(self, session_id: str) -> None:
        """Evict a session."""
        self._cached.pop(session_id, None)

    def _keep(self, key: str, now: float, routing: SessionRouting) -> None:
        self._cached.pop(key, None)
        self._cached[key] = (now, routing)
        while len(self._cached) > MAX_CACHED_SESSIONS:
            self._cached.popitem(last=False)


class TopicReader:
    """Reads the topics into the hub until it is cancelled.

    Args:
        hub: receives the messages.
        store: has the team, domain and counsellors of each session.
        topics: topics of turn scores, session scores and alerts.
        people_topics: topics of people's actions on alerts and interventions.
        options: aiokafka's connection options.
        declare: creates missing topics; otherwise the broker might create them on subscription,
            with another number of partitions.
    """

    def __init__(
        self,
        hub: Hub,
        store: Store,
        topics: list[str],
        people_topics: Sequence[str],
        options: dict[str, Any],
        declare: Callable[[], Awaitable[object]],
    ) -> None:
        self._hub = hub
        self._topics = [*topics, *people_topics]
        self._people_topics = frozenset(people_topics)
        self._options = options
        self._store = store
        self._declare = declare

    async def run(self) -> None:
        """Read the topics, reconnecting whenever the broker or the database was unavailable."""
        cache = RoutingCache(self._store, asyncio.get_running_loop().time)
        pause = MIN_PAUSE
        while True:
            reading = asyncio.create_task(self._read(cache))
            try:
                await asyncio.wait([reading])  # cancelling the reading does not cancel this task
            finally:
                reading.cancel()
            if self._hub.live:
                pause = MIN_PAUSE
                self._hub.mark_stale(datetime.now(UTC).isoformat())
                log.warning("live.disconnected", problem=_problem(reading))
            await asyncio.sleep(pause)
            pause = min(MAX_PAUSE, pause * 2)

    async def _read(self, cache: RoutingCache) -> None:
        await self._declare()
        consumer = AIOKafkaConsumer(
            *self._topics,
            **self._options,
            auto_offset_reset="latest",
            isolation_level="read_committed",
            fetch_max_wait_ms=FETCH_WAIT_MS,
            request_timeout_ms=10_000,
        )
        try:
            await asyncio.wait_for(consumer.start(), BROKER_TIMEOUT)
            await asyncio.wait_for(consumer.seek_to_end(), BROKER_TIMEOUT)
            self._hub.mark_live()
            log.info("live.connected", topics=self._topics)
            checking = asyncio.create_task(_check_broker(consumer))
            try:
                while not checking.done():
                    await self._batch(consumer, cache)
                checking.result()
            finally:
                checking.cancel()
                await asyncio.wait([checking])
        finally:
            await _stop(consumer)

    async def _batch(self, consumer: AIOKafkaConsumer, cache: RoutingCache) -> None:
        fetched = await consumer.getmany(timeout_ms=500, max_records=BATCH)
        messages, oldest = self._decoded(fetched, cache)
        if not fetched:
            self._hub.advance_while_idle()
        if not messages:
            return
        self._hub.advance(oldest)  # other partitions may be behind the newest
        await self._readmit(messages)
        routing_of = await cache.get(message.session_id for message in messages)
        for message in messages:
            session_routing = routing_of[message.session_id]
            if isinstance(message, _Scored):
                self._hub.broadcast_encoded(
                    message.kind,
                    message.raw,
                    message.session_id,
                    session_routing,
                )
            elif isinstance(message, AlertAction):
                self._hub.broadcast_action(message, session_routing)
            else:
                self._hub.broadcast_intervention(message, session_routing)
        if len(messages) < BATCH:
            await asyncio.sleep(GATHER_SECONDS)

    def _decoded(
        self, fetched: Mapping[TopicPartition, Sequence[ConsumerRecord]], cache: RoutingCache
    ) -> tuple[list[_Scored | Action], int]:
        """The messages, and when the oldest record was appended; forgets erased sessions."""
        messages: list[_Scored | Action] = []
        appended: list[int] = []
        for records in fetched.values():
            for record in records:
                appended.append(record.timestamp)
                if record.value is None:
                    self._forget((record.key or b"").decode("utf-8", "replace"), cache, messages)
                    continue
                try:
                    messages.append(self._message(record.topic, record.value))
                except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
                    log.warning("live.undecodable", topic=record.topic, problem=str(problem)[:100])
        return messages, min(appended, default=0)

    def _message(self, topic: str, value: bytes) -> "_Scored | Action":
        if topic in self._people_topics:
            return _action(value)
        raw = unframed(value)
        about = _about(raw)
        return _Scored(_KINDS[type(about)], about.session_id, raw)

    async def _readmit(self, messages: list[_Scored | Action]) -> None:
        """Broadcast hidden sessions again if they can be read: consent was renewed.

        Late events of sessions that are erased or still hidden stay out.
        """
        forgotten = self._hub.forgotten(message.session_id for message in messages)
        if forgotten:
            found = await asyncio.to_thread(find_readable, self._store, sorted(forgotten))
            for session_id in found:
                self._hub.readmit(session_id)

    def _forget(
        self,
        session_id: str,
        cache: RoutingCache,
        messages: list[_Scored | Action],
    ) -> None:
        """Drop everything about an erased or hidden session."""
        messages[:] = [message for message in messages if message.session_id != session_id]
        cache.forget(session_id)
        self._hub.forget(session_id)


def _action(raw: bytes) -> Action:
    return _actions.decode(unframed(raw))


def _problem(reading: "asyncio.Task[None]") -> str:
    problem = None if reading.cancelled() else reading.exception()
    return f"{type(problem).__name__}: {problem}"[:200] if problem else "cancelled"


async def _stop(consumer: AIOKafkaConsumer) -> None:
    """Stop the consumer; aiokafka 0.14 may cancel itself here and leave connections open."""
    stopping = asyncio.ensure_future(consumer.stop())
    await asyncio.wait([stopping], timeout=BROKER_TIMEOUT)
    if not stopping.done() or stopping.cancelled() or stopping.exception() is not None:
        stopping.cancel()
        await consumer._client.close()  # noqa: SLF001  # a second stop() would do nothing


async def _check_broker(consumer: AIOKafkaConsumer) -> None:
    """Never return; raise if the broker does not answer or its log was replaced.

    Compares end offsets with earlier end offsets, not with positions: the embedded broker reports
    the first record of the last batch as the end.
    """
    before: dict[TopicPartition, int] = {}
    while True:
        partitions = list(consumer.assignment())
        ends = await asyncio.wait_for(consumer.end_offsets(partitions), BROKER_TIMEOUT)
        if any(end < before.get(partition, end) for partition, end in ends.items()):
            raise LogChanged("the end offset of a partition has decreased")
        before = ends
        await asyncio.sleep(CHECK_SECONDS)
