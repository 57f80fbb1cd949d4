"""Faust's consumer, made to fetch soon and to keep the order of the log."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import IllegalStateError
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from faust.types import TP

from stream_app.errors import RapportError
from stream_app.worker.offsets import OffsetTracker

Fetch = Callable[[Any, int, Any], Awaitable[bool]]

if TYPE_CHECKING:
    from stream_app.worker.app import RapportApp

log = structlog.get_logger(__name__)

FETCH_WAIT_MS = 50
"""How long a broker may hold a fetch that finds nothing.

Faust says 1500 and has no setting for it. Kafka answers as soon as there is a record, but the
embedded broker looks only twice in that time, so a record lay there for up to 750 ms. With any
broker, a partition that was read to its end during such a fetch has to wait for its answer.
"""

FETCH_INTERVAL = 0.02
"""Seconds from an answer with records to the next request to the same broker.

Kafka answers as soon as a single record is there, so under load every few records would cost a
request, an answer and a round through Faust. What comes meanwhile comes at once; a record after a
pause is waited for as before.
"""

MAX_FETCH_DELAY = 1.0
"""Seconds after which more is fetched although a whole batch is waiting, whatever holds it up."""

DELIVERIES_PER_YIELD = 100
"""Records after which others on the event loop get their turn."""


class LogReplaced(RapportError):
    """A topic was deleted and made anew while its records were in hand."""


class _Thread(AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: Transport) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS  # noqa: SLF001  # read at start, not before
        return consumer

    async def on_start(self) -> None:
        """Start; from then on with fetches apart."""
        await super().on_start()
        fetcher: Any = self._ensure_consumer()._fetcher  # noqa: SLF001  # there is no setting
        consumer: Any = self.consumer
        most: int = consumer.app.batch_max
        fetcher._proc_fetch_request = rate_limited(  # noqa: SLF001
            fetcher._proc_fetch_request,  # noqa: SLF001
            FETCH_INTERVAL,
            lambda: consumer.offsets.count_pending() >= most,
        )


def rate_limited(fetch: Fetch, seconds: float, enough: Callable[[], bool]) -> Fetch:
    """Fetches of aiokafka's fetcher, the next one not before ``seconds`` after one with records.

    Nor while there is ``enough``: a worker that is behind fetches whole batches, not the few
    records that came meanwhile. Like the fetcher's own, it takes a cancellation for an answer
    without records.
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
    """Hands out no record before the one that it follows; commits what is finished only."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offsets = OffsetTracker()

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:
        """Records in their order; goes back wherever some were left out.

        For each record that it is given, Faust makes four tasks, in case the record has to wait.
        Those that need not wait, and that is nearly all, are handed on from here.
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
                back_to = self.offsets.check_fetched(tp, message.offset)
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
                except IllegalStateError:  # the partition has just been taken away
                    self.offsets.revoked()
                    return

    async def _restart_on_new_log(self, tp: TP, offset: int) -> bool:
        """Whether the new log of a topic that was deleted can be read on here.

        With records of the old one in hand it cannot: the worker ends, and the next one begins.
        """
        log.warning("log.replaced", partition=tp.partition, offset=offset)
        if self.offsets.restart_at(tp, offset):
            self._read_offset[tp] = self._committed_offset[tp] = None
            return True
        await self.app.crash(
            LogReplaced(
                f"the topic {tp.topic} was deleted and made anew: its partition {tp.partition} "
                f"begins again at offset {offset}; the worker starts again and reads it from there"
            )
        )
        return False

    def _deliverable_now(self, tp: TP, offset: int) -> bool:
        """Whether Faust would take the record as the next one, and at once."""
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
        """Go back to what the group has committed; further, if the database holds less."""
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
        self.offsets.sought(committed | back)

    async def _missing_in_database(self, committed: Mapping[TP, int | None]) -> dict[TP, int]:
        """Partitions whose events are not all in the database, and where it goes on from."""
        app = cast("RapportApp", self.app)
        if app.find_start is None or not committed:
            return {}
        places = {(tp.topic, tp.partition): offset for tp, offset in committed.items()}
        ask = partial(app.find_start, places)
        found = await asyncio.get_running_loop().run_in_executor(None, ask)
        back = {TP(*place): offset for place, offset in found.back.items()}
        for tp, offset in back.items():
            log.warning(
                "log.back",
                partition=tp.partition,
                committed=committed[tp],
                stored=offset,
                why="the database holds less of the log: was an older one restored?",
            )
        return back

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """A rebalance begins."""
        self.offsets.revoked()
        await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """A rebalance ends."""
        self.offsets.assigned()
        await super().on_partitions_assigned(assigned, generation_id)

    def _new_offset(self, tp: TP) -> int | None:
        """What may be committed: what is finished, whatever Faust has acknowledged."""
        super()._new_offset(tp)  # else its books grow
        return self.offsets.committable(tp)

    def _new_consumer_thread(self) -> _Thread:
        return _Thread(self, loop=self.loop, beacon=self.beacon)


class OrderedTransport(Transport):
    """Faust's transport with this consumer."""

    Consumer = OrderedConsumer
