"""Faust's consumer with shorter fetches and strict log order, which leaves out aborted events."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from functools import partial
from typing import Any, Protocol, cast

import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import IllegalStateError, KafkaError
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from faust.types import TP
from msgspec import Struct

from stream_app.errors import RapportError
from stream_app.store.stream.log_positions import StartOffsets, TopicPartition
from stream_app.worker.kafka.offsets import OffsetTracker
from stream_app.worker.kafka.topics import stable_end

Fetch = Callable[[Any, int, Any], Awaitable[bool]]

log = structlog.get_logger(__name__)

FETCH_INTERVAL = 0.02
"""Seconds between a fetch that returned records and the next fetch from the same broker.

Kafka answers as soon as it has a single record, so under load every few records would cost a
request, an answer and a pass through Faust. Records that arrive in the interval are fetched
together; the first record after a pause is not delayed.
"""

MAX_FETCH_DELAY = 1.0
"""Seconds after which a fetch is sent even though a whole batch is still pending."""

DELIVERIES_PER_YIELD = 100
"""Records delivered before other tasks of the event loop may run."""


class ReadTo(Struct, frozen=True):
    """How far a partition is read.

    ``position``: the next offset to fetch, behind what is no event: transaction markers, aborted
    and deleted records. ``end``: the end of the committed records as of the latest fetch.
    ``taken``: the offset after the last record that was handed to Faust; None without one.
    """

    position: int
    end: int
    taken: int | None


class OrderedApp(Protocol):
    """What the consumer needs of its Faust app."""

    before_wait: Callable[[], None] | None
    """Called before a stop or a rebalance waits for the unacknowledged events."""
    find_start: Callable[[Mapping[TopicPartition, int | None]], StartOffsets] | None
    """Compares the group's committed offsets with the database's; blocks."""
    on_deleted: Callable[[TP, int, int], Awaitable[None]] | None
    """Called for events that the broker deleted unread: partition, first offset, end."""
    batch_max: int
    """Maximum number of events in a batch."""
    fetch_wait: float
    """Seconds for which a broker may block a fetch without records."""


class LogReplaced(RapportError):
    """A topic was deleted and recreated while its records were in progress."""


class _Thread(AIOKafkaConsumerThread):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.read_to: dict[TP, ReadTo] = {}
        """Replaced as a whole, so that other threads may read it."""
        self._taken: dict[TP, int] = {}

    def _create_worker_consumer(self, transport: Transport) -> AIOKafkaConsumer:
        """Create a consumer of committed records whose fetches wait as set.

        Faust would let them wait for 1500 ms, and read committed records only in transactions of
        its own.
        """
        consumer = super()._create_worker_consumer(transport)
        app = cast("OrderedApp", self.consumer.app)
        consumer._fetch_max_wait_ms = round(app.fetch_wait * 1000)  # noqa: SLF001  # read at start
        consumer._isolation_level = "read_committed"  # noqa: SLF001  # read at start
        return consumer

    async def on_start(self) -> None:
        """Start with rate-limited fetches."""
        await super().on_start()
        fetcher: Any = self._ensure_consumer()._fetcher  # noqa: SLF001  # there is no setting
        consumer: Any = self.consumer
        most: int = consumer.app.batch_max
        fetch = rate_limited(
            fetcher._proc_fetch_request,  # noqa: SLF001
            FETCH_INTERVAL,
            lambda: consumer.offsets.count_pending() >= most,
        )

        async def fetch_and_note(assignment: Any, node: int, request: Any) -> bool:
            found = await fetch(assignment, node, request)
            self._note_positions()
            return found

        fetcher._proc_fetch_request = fetch_and_note  # noqa: SLF001

    async def _fetch_records(self, *args: Any, **kwargs: Any) -> Any:
        fetched = await super()._fetch_records(*args, **kwargs)
        for tp, records in fetched.items():
            self._taken[tp] = records[-1].offset + 1
        self._note_positions()
        return fetched

    def _note_positions(self) -> None:
        """Note how far each partition is read.

        Runs in the thread that advances the positions, so that no record is between a position and
        what Faust has taken.
        """
        subscription: Any = self._ensure_consumer()._subscription.subscription  # noqa: SLF001
        assignment = subscription and subscription.assignment
        if not assignment:
            return
        noted = {}
        for tp in map(TP._make, assignment.tps):
            state = assignment.state_value(tp)
            end = stable_end(state.highwater, state.lso)
            if state.has_valid_position and end is not None:
                noted[tp] = ReadTo(state.position, end, self._taken.get(tp))
        self.read_to = noted

    def forget_positions(self) -> None:
        """Forget how far the partitions are read, after a seek."""
        self.read_to = {}

    def topic_partitions(self, topic: str) -> int | None:
        """Number of partitions in the brokers' metadata; None while the topic does not exist.

        Faust asks the group's coordinator, which knows them only in the group's leader.
        """
        known = self._consumer.partitions_for_topic(topic) if self._consumer is not None else None
        return len(known) if known else None


def rate_limited(fetch: Fetch, seconds: float, enough: Callable[[], bool]) -> Fetch:
    """Wrap the fetch of aiokafka's fetcher to wait ``seconds`` after a fetch that returned records.

    It also waits while ``enough`` is true: a worker that is behind then fetches whole batches
    instead of a few new records. Like the original, a cancelled fetch returns False (no records).
    """
    not_before: dict[int, float] = {}

    async def fetch_limited(assignment: Any, node: int, request: Any) -> bool:
        now = asyncio.get_running_loop().time
        at_last = now() + MAX_FETCH_DELAY
        try:
            await asyncio.sleep(not_before.get(node, 0.0) - now())
            while enough() and now() < at_last:
                await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            return False
        found = await fetch(assignment, node, request)
        if found:
            not_before[node] = now() + seconds
        return found

    return fetch_limited


class OrderedConsumer(Consumer):
    """Delivers records in strict log order; commits only the offsets of finished events."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offsets = OffsetTracker()
        self._deleted_to: dict[TP, int] = {}
        """Up to where deleted events are reported, by partition."""

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:
        """Yield records in log order; seek back where some were skipped.

        Faust creates four tasks per yielded record, in case it has to wait. Records that need not
        wait, which are nearly all, are delivered here without them.
        """
        skipped: set[TP] = set()
        handed_on = 0
        fetched = cast("AsyncGenerator[tuple[TP, Any], None]", super().getmany(timeout))
        async with aclosing(fetched) as records:
            async for tp, message in records:
                if not self.offsets.is_known(tp):
                    await self.perform_seek()
                    return
                if tp in skipped:
                    continue
                replaced = self.offsets.is_replaced(tp, message.offset)
                if replaced and not await self._restart_on_new_log(tp, message.offset):
                    return
                expected = self.offsets.next_expected(tp)
                back_to = self.offsets.record_fetch(tp, message.offset)
                if back_to is None and message.offset > expected:
                    await self.report_deleted(tp, expected, message.offset)
                if back_to is None and self._deliverable_now(tp, message.offset):
                    await self.callback(message)
                    self._read_offset[tp] = message.offset
                    handed_on += 1
                    if handed_on % DELIVERIES_PER_YIELD == 0:
                        await asyncio.sleep(0)
                    continue
                if back_to is None:
                    yield tp, message
                    continue
                log.info("log.gap", partition=tp.partition, first=back_to, next=message.offset)
                skipped.add(tp)
                try:
                    await self.seek_wait({tp: back_to})
                except IllegalStateError:  # the partition has just been revoked
                    self.offsets.on_revoked()
                    return

    def read_to(self, tp: TP) -> ReadTo | None:
        """How far a partition is read; None while it is not known."""
        if not self.offsets.is_known(tp):
            return None
        return cast("_Thread", self._thread).read_to.get(tp)

    async def report_deleted(self, tp: TP, first: int, following: int) -> None:
        """Report the events in a gap of the log that were deleted before they were read.

        What else makes a gap (transaction markers, aborted records, compaction) is behind the
        start of the log.
        """
        try:
            start = (await self.earliest_offsets(tp))[tp]
        except KafkaError as problem:
            log.warning(
                "log.gap_unexplained",
                partition=tp.partition,
                first=first,
                next=following,
                reason=type(problem).__name__,
            )
            return
        first = max(first, self._deleted_to.get(tp, 0))
        until = min(start, following)
        app = cast("OrderedApp", self.app)
        if until > first:
            self._deleted_to[tp] = until
            if app.on_deleted is not None:
                await app.on_deleted(tp, first, until)

    async def _restart_on_new_log(self, tp: TP, offset: int) -> bool:
        """Continue with the new log of a recreated topic; return whether that is possible.

        While records of the old log are in progress it is not: the worker crashes and restarts.
        """
        log.warning("log.replaced", partition=tp.partition, offset=offset)
        if self.offsets.restart_at(tp, offset):
            self._read_offset[tp] = self._committed_offset[tp] = None
            self._deleted_to.pop(tp, None)
            return True
        await self.app.crash(
            LogReplaced(
                f"the topic {tp.topic} was deleted and recreated: its partition {tp.partition} "
                f"starts again at offset {offset}; the worker restarts and reads it from there"
            )
        )
        return False

    def _deliverable_now(self, tp: TP, offset: int) -> bool:
        """Whether Faust would accept the record as the next one without waiting."""
        read = self._read_offset[tp]
        app: Any = self.app
        return (
            read is not None
            and 0 <= offset - read <= 1
            and self.flow_active
            and not self.should_stop
            and app.flow_control.is_active()
            and not any(channel.queue.full() for channel in app.topics._tp_index[tp])  # noqa: SLF001
        )

    async def perform_seek(self) -> None:
        """Seek to the group's committed offsets, or further back if the database contains less."""
        await super().perform_seek()
        committed = {tp: self._committed_offset[tp] for tp in self.assignment()}
        try:
            back = await self._missing_in_database(committed)
        except RapportError as problem:
            log.critical("worker.crash", reason=type(problem).__name__, detail=str(problem))
            await self.app.crash(problem)
            return
        if back:
            self._committed_offset.update(back)
            self._read_offset.update(back)
            await self.seek_wait(back)
        cast("_Thread", self._thread).forget_positions()
        self.offsets.on_seek(committed | back)

    async def _missing_in_database(self, committed: Mapping[TP, int | None]) -> dict[TP, int]:
        """Offsets to go back to, of partitions whose committed events the database lacks."""
        app = cast("OrderedApp", self.app)
        if app.find_start is None or not committed:
            return {}
        places = {(tp.topic, tp.partition): offset for tp, offset in committed.items()}
        ask = partial(app.find_start, places)
        found = await asyncio.get_running_loop().run_in_executor(None, ask)
        back = {TP(*place): offset for place, offset in found.rewound.items()}
        for tp, offset in back.items():
            log.warning(
                "log.back",
                partition=tp.partition,
                committed=committed[tp],
                stored=offset,
                why="the database lacks committed events; was an older one restored?",
            )
        return back

    async def wait_empty(self) -> None:
        """Wait for the batches in progress, and for no event that is in none."""
        app = cast("OrderedApp", self.app)
        if app.before_wait is not None:
            app.before_wait()
        await super().wait_empty()

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Handle the start of a rebalance."""
        self.offsets.on_revoked()
        await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Handle the end of a rebalance."""
        self.offsets.on_assigned()
        await super().on_partitions_assigned(assigned, generation_id)

    def _filter_tps_with_pending_acks(
        self, topics: AbstractSet[str | TP] | None = None
    ) -> Iterator[TP]:
        """Partitions that may have an offset to commit.

        Faust names those whose events were acknowledged. What is no event (the marker of a
        transaction at the end of the log) is acknowledged by nobody. No other partition is added:
        Faust forgets at a rebalance what it has committed, and would commit the old position into
        the new log of a recreated topic.
        """
        found = self.offsets.skipped().union(super()._filter_tps_with_pending_acks(topics))
        return (tp for tp in found if topics is None or tp in topics or tp.topic in topics)

    def _new_offset(self, tp: TP) -> int | None:
        """The offset to commit: by finished events, not by Faust's acknowledgements."""
        super()._new_offset(tp)  # otherwise Faust's list of gaps grows
        self._acked[tp].clear()  # it drops one run of offsets each time; fair order makes many
        self._acked_index[tp].clear()
        return self.offsets.committable(tp)

    def _new_consumer_thread(self) -> _Thread:
        return _Thread(self, loop=self.loop, beacon=self.beacon)


class OrderedTransport(Transport):
    """Faust's transport with the ``OrderedConsumer``."""

    Consumer = OrderedConsumer
