"""The agent on ``dialogue.turns``: take a batch, commit, publish and acknowledge it, in that order.

Meanwhile the next batch is decoded and its turns are encoded, which needs no session state.

No exception may leave the agent's body, because Faust would acknowledge or skip the batch. An error
that cannot be retried crashes the process; its supervisor restarts it, and the batch is read again.
"""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any, TypeVar

import structlog
from msgspec import structs

from stream_app.contracts import framing
from stream_app.contracts.events import peek_session_id
from stream_app.core.pipeline.pipeline import Received
from stream_app.errors import RapportError, StoreError
from stream_app.store.stream.log_positions import TopicPartition
from stream_app.tracing.port import Work
from stream_app.worker.batches.lane import Lane, run_in
from stream_app.worker.batches.progress import Progress
from stream_app.worker.batches.record_decoder import RecordDecoder
from stream_app.worker.kafka.adaptive_batching import Batching
from stream_app.worker.kafka.app import RapportApp
from stream_app.worker.upkeep.tasks import Upkeep
from stream_app.worker.upkeep.timers import Task

log = structlog.get_logger(__name__)
T = TypeVar("T")

ACKNOWLEDGE_EVERY = 0.2
"""Seconds between two acknowledgements while batches follow each other without a pause.

A rebalance reads again what is not acknowledged; the sessions skip it as duplicates.
"""


class EventsLeftOut(RapportError):
    """The consumer skipped events that exist in the log."""


class TurnAgent:
    """Feeds the lane with batches; one per worker."""

    def __init__(self, app: RapportApp, lane: Lane, progress: Progress, upkeep: Upkeep) -> None:
        self.lane = lane
        self.health = upkeep.health
        self.metrics = lane.processor.metrics
        self._app = app
        self._progress = progress
        self._upkeep = upkeep
        self._tracing = lane.processor.stages.tracing
        self._batching = Batching(app.batch_max)
        self._decoder = RecordDecoder(self.metrics, self._tracing)
        self._prepare_thread = ThreadPoolExecutor(1, thread_name_prefix="prepare")
        self._reporting: asyncio.Task[None] | None = None
        self._acknowledged_at = 0.0

    def attach(self) -> None:
        """Register the agent, the tasks and the rebalance hooks with the app."""
        topic = self._app.topic(
            self._progress.topic,
            key_type=bytes,
            value_type=bytes,
            key_serializer="raw",
            value_serializer="raw",
        )
        self._app.agent(topic, name="turns", concurrency=1)(self._consume)
        for task in self._upkeep.tasks():
            self._add_timer(task)
        self._app.on_partitions_assigned.connect(self._on_assigned)
        self._app.on_partitions_revoked.connect(self._on_revoked)
        self._app.before_stop = self.lane.processor.retries.stop
        self._app.before_wait = self._leave_waiting
        self._app.on_deleted = self._report_deleted

    def _add_timer(self, task: Task) -> None:
        async def run() -> None:
            await task.run(self.lane.exclusive)

        self._app.timer(task.every, on_leader=False, name=task.name)(run)

    async def _consume(self, stream: Any) -> None:
        await self._crash_on_error(self._process_stream(stream))

    async def _process_stream(self, stream: Any) -> None:
        """Prepare each batch while the previous one is processed."""
        self.lane.next_waits = False
        working: asyncio.Task[bool | None] | None = None
        try:
            async with aclosing(self._batching.batches(stream, self._admit)) as taken:
                async for events in taken:
                    work = self._tracing.batch(self._progress.topic, len(events))
                    batch = await self._crash_on_error(self._prepare(events, work))
                    self.lane.next_waits = batch is not None
                    if working is not None and not await working:
                        return
                    working = None
                    if batch is None:
                        return
                    self.lane.next_waits = False
                    working = asyncio.create_task(
                        self._crash_on_error(self._process_and_acknowledge(events, batch, work))
                    )
            if working is not None:
                await working
        except EventsLeftOut:
            if working is not None:
                await working  # its events precede those that were left out
            raise
        finally:
            if working is not None:
                working.cancel()

    async def _crash_on_error(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return the result; on an error, crash the worker and return None."""
        try:
            return await work
        except asyncio.CancelledError:
            raise
        except Exception as problem:  # noqa: BLE001  # no exception may leave the agent's body
            await self._upkeep.crash(problem)
            await self._app.wait_until_stopped()
            return None  # acknowledging now would lose the batch

    async def _prepare(self, events: Sequence[Any], work: Work) -> list[Received]:
        messages = [event.message for event in events]
        self._progress.received(messages)
        positions = [self._app.offsets.begin(each.tp, each.offset) for each in messages]
        records = map(self._decode, events, positions)  # lazy: decoded in the other thread
        with work.active():
            return await run_in(self._prepare_thread, lambda: self.lane.processor.prepare(records))

    async def _process_and_acknowledge(
        self, events: Sequence[Any], batch: list[Received], work: Work
    ) -> bool:
        """Process and acknowledge a batch; returns True, because None means failure."""
        with work.active():
            await self.lane.process(batch)
        work.end()
        self._progress.processed(batch)
        for event, received in zip(events, batch, strict=True):
            self._app.offsets.finish(event.message.tp, received.position)
            event.ack()
        now = time.monotonic()
        if not self.lane.next_waits or now - self._acknowledged_at >= ACKNOWLEDGE_EVERY:
            self._acknowledged_at = now
            await self._app.consumer.commit()
        self.health.progressed()
        return True

    def _admit(self, event: Any) -> tuple[TopicPartition, str | None]:
        """Check that an event follows its predecessor; return its partition and session."""
        message = event.message
        left_out = self._app.offsets.admit(message.tp, message.offset)
        if left_out:
            raise EventsLeftOut(
                f"{left_out} events of partition {message.partition} before offset "
                f"{message.offset} were skipped; they will be read again after a restart"
            )
        return message.tp, peek_session_id(framing.unframed(event.value or b""))

    def _decode(self, event: Any, position: int) -> Received:
        received = self._decoder.decode(event)
        if position == received.position:
            return received
        return structs.replace(received, done_to=position)

    def _leave_waiting(self) -> None:
        """Leave the events that are in no batch to the partitions' next owner.

        A stop or a rebalance waits for all events that Faust counts as unacknowledged.
        """
        for event in self._batching.leave():
            self._app.consumer.unacked.discard(event.message)

    async def _report_deleted(self, at: TopicPartition, first: int, until: int) -> None:
        """Report events that the broker deleted before this group had read them."""
        topic, partition = at
        log.warning(
            "log.deleted",
            partition=partition,
            first=first,
            next=until,
            events=until - first,
            why="the topic's retention deleted them before they were read",
        )
        self.metrics.deleted_unread.inc(until - first)
        record = self._app.record_deleted
        if record is None:
            return
        try:
            await asyncio.to_thread(record, (topic, partition), first, until)
        except StoreError as problem:
            log.error("log.deleted_not_stored", reason=type(problem).__name__, detail=str(problem))

    async def _on_assigned(self, *_: Any, **__: Any) -> None:
        self.health.joined(self._progress.assigned())
        self._reporting = asyncio.create_task(self._upkeep.report_until_ready())

    async def _on_revoked(self, *_: Any, **__: Any) -> None:
        self.lane.processor.cache.invalidate()
        self.health.left()
        self.metrics.lag.clear()
        self._progress.revoked()
