"""The agent on ``dialogue.turns``: take a batch, commit, publish and acknowledge it, in that order.

Meanwhile the next batch is decoded and its turns are encoded, which needs no session state.

No exception may leave the agent's body, because Faust would acknowledge or skip the batch. An error
that cannot be retried crashes the process; its supervisor restarts it, and the batch is read again.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar, cast

import structlog
from aiokafka.errors import MessageSizeTooLargeError
from faust.exceptions import ProducerSendError
from faust.types import TP
from msgspec import structs

from stream_app.contracts import framing, scores
from stream_app.contracts.events import MAX_EVENT_BYTES, peek_session_id
from stream_app.contracts.scores import DEAD_LETTER_HEADER, DeadLetter
from stream_app.core.pipeline.pipeline import Received
from stream_app.core.session.batch import BatchResult, SetAside
from stream_app.core.session.ports import TraceHeaders
from stream_app.errors import ClocksDisagree, DatabaseWentBack, RapportError, StoreError
from stream_app.settings import Settings
from stream_app.store.lifecycle.retention import PurgeRefused
from stream_app.tracing.port import OFF, Tracing, Work
from stream_app.worker.batches.bisection import handle_in_parts
from stream_app.worker.batches.broker_clock import BrokerClock
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.batches.processor import BatchProcessor, Committed
from stream_app.worker.batches.record_decoder import RecordDecoder
from stream_app.worker.kafka.adaptive_batching import Batching
from stream_app.worker.kafka.app import RapportApp, assigned_partitions, lag_of, skipped_ends
from stream_app.worker.kafka.publishing import publish
from stream_app.worker.kafka.watermarks import Watermarks
from stream_app.worker.upkeep.health import Health
from stream_app.worker.upkeep.intent_loading import IntentReloader
from stream_app.worker.upkeep.rule_loading import RuleReloader
from stream_app.worker.upkeep.timers import periodic

if TYPE_CHECKING:  # the former needs ONNX Runtime, which the console has not
    from stream_app.worker.kafka.consumer import OrderedConsumer
    from stream_app.worker.upkeep.bundle_loading import BundleReloader

log = structlog.get_logger(__name__)
T = TypeVar("T")

HEALTH_EVERY = 1.0
REPORTS_AT_START = 10
TICK_EVERY = 1.0
TICK_AFTER = timedelta(seconds=5)
"""Grace period for deadlines; a partition less far behind counts as caught up."""
RULES_EVERY = 3.0
BASELINES_EVERY = 300.0
PURGE_EVERY = 600.0
ERASED_EVERY = 5.0
POSITIONS_EVERY = 5.0
ERASED_SLACK = timedelta(minutes=10)
"""How far the clock of the machine that runs `rapport erase` may be behind."""
LEFT_EVERY = 10.0
WITHDRAWALS_EVERY = 5.0
ERASURES_EVERY = 5.0
ROLLUPS_EVERY = 60.0
ACKNOWLEDGE_EVERY = 0.2
"""Seconds between two acknowledgements while batches follow each other without a pause.

A rebalance reads again what is not acknowledged; the sessions skip it as duplicates.
"""
ABANDONED_AFTER = 60.0
"""Seconds after which unpublished messages count as abandoned by the worker that stored them."""


class EventsLeftOut(RapportError):
    """The consumer skipped events that exist in the log."""


class TurnAgent:
    """Feeds the processor and runs the timers; one per worker."""

    def __init__(
        self,
        app: RapportApp,
        settings: Settings,
        processor: BatchProcessor,
        health: Health,
        metrics: WorkerMetrics,
        rules: RuleReloader,
        reload_baselines: Callable[[], None],
        purge_expired: Callable[[datetime], Iterator[Counter[str]]],
        update_rollups: Callable[[datetime], Iterator[int]],
        apply_withdrawals: Callable[[datetime], list[int]],
        finish_erasures: Callable[[Any], Coroutine[Any, Any, None]],
        tracing: Tracing = OFF,
        bundles: "BundleReloader | None" = None,
        intents: IntentReloader | None = None,
        close_left: Callable[[datetime, list[int]], Committed | None] = lambda *_: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """``close_left``: see ``upkeep.left_bundles``.

        ``now``: what the timers measure by; the clock of this machine may be wrong.
        """
        self.health = health
        self.metrics = metrics
        self._app = app
        self._settings = settings
        self._processor = processor
        self._rules = rules
        self._intents = intents
        self._close_left = close_left
        self._now = now
        self._reload_baselines = reload_baselines
        self._purge = purge_expired
        self._update_rollups = update_rollups
        self._apply_withdrawals = apply_withdrawals
        self._finish_erasures = finish_erasures
        self._tracing = tracing
        self._bundles = bundles
        self._baselines_at = time.monotonic()
        self._batching = Batching(settings.batch_max)
        self._watermarks = Watermarks()
        self.broker_clock = BrokerClock()
        self._decoder = RecordDecoder(metrics, tracing)
        self._batch_thread = ThreadPoolExecutor(1, thread_name_prefix="batch")
        self._prepare_thread = ThreadPoolExecutor(1, thread_name_prefix="prepare")
        self._exclusive = asyncio.Lock()
        self._reporting: asyncio.Task[None] | None = None
        self._next_waits = False
        """Whether the next batch is prepared while the current one is processed."""
        self._acknowledged_at = 0.0
        self.on_batch: Callable[[BatchResult], None] | None = None

    def attach(self) -> None:
        """Register the agent, the timers and the rebalance hooks with the app."""
        topic = self._app.topic(
            self._settings.turns_topic,
            key_type=bytes,
            value_type=bytes,
            key_serializer="raw",
            value_serializer="raw",
        )
        self._app.agent(topic, name="turns", concurrency=1)(self._consume)
        self._app.timer(self._settings.idle_check_every, on_leader=False)(self._flush_idle_sessions)
        self._app.timer(LEFT_EVERY, on_leader=False)(self._close_left_states)
        self._app.timer(HEALTH_EVERY, on_leader=False)(self._report_health)
        self._app.timer(TICK_EVERY, on_leader=False)(self._fire_due_rules)
        self._app.timer(RULES_EVERY, on_leader=False)(self._reload_rules)
        self._app.timer(RULES_EVERY, on_leader=False)(self._reload_bundles)
        self._app.timer(RULES_EVERY, on_leader=False)(self._reload_intents)
        self._app.timer(ERASED_EVERY, on_leader=False)(self._forget_erased)
        self._app.timer(WITHDRAWALS_EVERY, on_leader=False)(self._carry_out_withdrawals)
        self._app.timer(ERASURES_EVERY, on_leader=False)(self._finish_erased)
        self._app.timer(POSITIONS_EVERY, on_leader=False)(self._check_positions)
        self._app.timer(PURGE_EVERY, on_leader=False)(self._purge_expired)
        self._app.timer(ROLLUPS_EVERY, on_leader=False)(self._roll_up)
        self._app.on_partitions_assigned.connect(self._on_assigned)
        self._app.on_partitions_revoked.connect(self._on_revoked)
        self._app.before_stop = self._processor.stop_retrying
        self._app.before_wait = self._leave_waiting
        self._app.on_deleted = self._report_deleted

    async def _consume(self, stream: Any) -> None:
        await self._crash_on_error(self._process_stream(stream))

    async def _process_stream(self, stream: Any) -> None:
        """Prepare each batch while the previous one is processed."""
        self._next_waits = False
        working: asyncio.Task[bool | None] | None = None
        try:
            async with aclosing(self._batching.batches(stream, self._admit)) as taken:
                async for events in taken:
                    work = self._tracing.batch(self._settings.turns_topic, len(events))
                    batch = await self._crash_on_error(self._prepare(events, work))
                    self._next_waits = batch is not None
                    if working is not None and not await working:
                        return
                    working = None
                    if batch is None:
                        return
                    self._next_waits = False
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
            await self._crash(problem)
            await self._app.wait_until_stopped()
            return None  # acknowledging now would lose the batch

    async def _crash(self, problem: Exception) -> None:
        log.critical("worker.crash", reason=type(problem).__name__, detail=str(problem))
        self.metrics.crashes.labels(type(problem).__name__).inc()
        self._app.consumer.unacked.clear()  # otherwise the stop would wait for the batch
        await self._app.crash(problem)

    async def _prepare(self, events: Sequence[Any], work: Work) -> list[Received]:
        messages = [event.message for event in events]
        self.broker_clock.received(messages)
        positions = [self._app.offsets.begin(each.tp, each.offset) for each in messages]
        records = map(self._decode, events, positions)  # lazy: decoded in the other thread
        with work.active():
            return await self._blocking(
                lambda: self._processor.prepare(records), self._prepare_thread
            )

    async def _process_and_acknowledge(
        self, events: Sequence[Any], batch: list[Received], work: Work
    ) -> bool:
        """Process and acknowledge a batch; returns True, because None means failure."""
        with work.active():
            await self._process_and_publish(batch)
        work.end()
        for event, received in zip(events, batch, strict=True):
            self._app.offsets.finish(event.message.tp, received.position)
            event.ack()
        now = time.monotonic()
        if not self._next_waits or now - self._acknowledged_at >= ACKNOWLEDGE_EVERY:
            self._acknowledged_at = now
            await self._app.consumer.commit()
        self.health.progressed()
        return True

    async def _process_and_publish(self, batch: list[Received]) -> None:
        async with self._exclusive:
            parts = await self._blocking(lambda: handle_in_parts(self._processor, batch))
            with self.metrics.timed("publish"), self._tracing.stage("publish", batch):
                for committed in parts:
                    await self._publish(committed)
        self._watermarks.advance(batch, self._now())
        for committed in parts:
            if self.on_batch is not None:
                self.on_batch(committed.result)

    def _admit(self, event: Any) -> tuple[TP, str | None]:
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

    @periodic("idle.failed")
    async def _flush_idle_sessions(self) -> None:
        """Publish messages that a dead worker left in the outbox, and flush idle sessions."""
        if not assigned_partitions(self._app, self._settings.turns_topic):
            return
        async with self._exclusive:
            left = await self._blocking(lambda: self._processor.abandoned_batches(ABANDONED_AFTER))
            for committed in left:
                await self._publish(committed)
        for before, partitions in self._idle_before():
            await self._flush_idle(before, partitions)

    async def _flush_idle(self, before: datetime, partitions: list[int]) -> None:
        await self._commit_and_publish(
            "flush_idle", lambda: self._processor.flush_idle(before, partitions)
        )

    @periodic("left.failed")
    async def _close_left_states(self) -> None:
        """Close what bundles that are no longer in force have left open."""
        for before, partitions in self._idle_before():
            while await self._close_some_left(before, partitions):
                pass

    async def _close_some_left(self, before: datetime, partitions: list[int]) -> bool:
        """Close some, between two batches; return whether there may be more."""
        async with self._exclusive:
            some = await self._blocking(lambda: self._close_left(before, partitions))
            if some is not None:
                await self._publish(some)
        return some is not None

    async def _commit_and_publish(self, timer: str, commit: Callable[[], Committed | None]) -> None:
        """Carry out what a timer does to sessions, if there are any."""
        work = self._tracing.timer(timer)
        async with self._exclusive:
            with work.active():
                committed = await self._blocking(commit)
                if committed is None:
                    return
                with self._tracing.stage("publish"):
                    await self._publish(committed)
            work.end()
            if self.on_batch is not None:
                self.on_batch(committed.result)

    def _idle_before(self) -> list[tuple[datetime, list[int]]]:
        """Partitions by idle threshold: sessions last heard of before that time are idle."""
        found: dict[datetime, list[int]] = {}
        for partition, now in self._current_watermarks().items():
            found.setdefault(now - self._settings.idle_after, []).append(partition)
        return list(found.items())

    @periodic("tick.failed")
    async def _fire_due_rules(self) -> None:
        """Fire due time rules of silent sessions, in partitions that are caught up.

        The grace period lets turns that were spoken before a deadline arrive.
        """
        now = self._now()
        partitions = self._caught_up(now - TICK_AFTER)
        if not partitions:
            return
        due, active_since = now - TICK_AFTER, now - self._settings.idle_after
        await self._commit_and_publish(
            "fire_due", lambda: self._processor.fire_due(due, active_since, partitions)
        )

    def _caught_up(self, since: datetime) -> list[int]:
        """Assigned partitions that are read to their end, or whose watermark is after ``since``."""
        return [partition for partition, now in self._current_watermarks().items() if now > since]

    def _current_watermarks(self) -> dict[int, datetime]:
        lag = lag_of(self._app, self._settings.turns_topic) or {}
        return self._watermarks.current(lag, self._now())

    @periodic("rules.failed")
    async def _reload_rules(self) -> None:
        """Reload the file of rules if it has changed; reload the baselines every few minutes."""
        async with self._exclusive:
            await self._blocking(self._rules.reload_if_changed)
            if time.monotonic() - self._baselines_at >= BASELINES_EVERY:
                self._baselines_at = time.monotonic()
                await self._blocking(self._reload_baselines)

    @periodic("bundles.failed")
    async def _reload_bundles(self) -> None:
        """Load changed bundles while batches go on, and adopt them between two batches."""
        bundles = self._bundles
        if bundles is None or not await asyncio.to_thread(bundles.load_if_changed):
            return
        async with self._exclusive:
            await self._blocking(bundles.adopt)

    @periodic("intents.failed")
    async def _reload_intents(self) -> None:
        """Reload the file of intents if it has changed; its sentences are encoded meanwhile."""
        intents = self._intents
        if intents is not None and await asyncio.to_thread(intents.prepare):
            async with self._exclusive:
                await self._blocking(intents.adopt)

    @periodic("erased.failed")
    async def _forget_erased(self) -> None:
        """Evict states and keys of erased sessions from memory."""
        since = self._now() - ERASED_SLACK
        async with self._exclusive:
            await self._blocking(lambda: self._processor.forget_erased(since))

    @periodic("withdrawals.failed")
    async def _carry_out_withdrawals(self) -> None:
        """Hide or erase sessions whose consent was withdrawn, and notify consumers of erasures."""
        async with self._exclusive:
            outbox_ids = await self._blocking(lambda: self._apply_withdrawals(self._now()))
            if not outbox_ids:
                return
            log.info("withdrawals.erased")
            for committed in await self._blocking(lambda: self._processor.stored(outbox_ids)):
                await self._publish(committed)

    @periodic("erasures.failed")
    async def _finish_erased(self) -> None:
        """Withdraw erased sessions' dead letters and store receipts; batches go on meanwhile."""
        await self._finish_erasures(await self._producer())

    @periodic("positions.failed")
    async def _check_positions(self) -> None:
        """Crash if an older database took the place of this one: the restart reads the log again.

        A batch is checked in its transaction; this is for partitions without new events.
        """
        async with self._exclusive:
            try:
                await self._blocking(self._processor.check_positions)
                await self._skip_what_is_no_event()
            except DatabaseWentBack as problem:
                await self._crash(problem)

    async def _skip_what_is_no_event(self) -> None:
        """Commit the position behind transaction markers, aborted and deleted records.

        Otherwise others would count them as lag: the console, and who reads the group's offsets.
        """
        consumer = cast("OrderedConsumer", self._app.consumer)
        offsets, ends = self._app.offsets, skipped_ends(self._app, self._settings.turns_topic)
        if not ends:
            return
        for tp, end in ends.items():
            await consumer.report_deleted(tp, offsets.done(tp), end)
            offsets.skip_to(tp, end)
        places = {(tp.topic, tp.partition): end for tp, end in ends.items()}
        await self._blocking(lambda: self._processor.skip_to(places))
        for tp, end in ends.items():
            offsets.finish(tp, end)
        await self._app.consumer.commit()

    async def _report_deleted(self, tp: TP, first: int, until: int) -> None:
        """Report events that the broker deleted before this group had read them."""
        log.warning(
            "log.deleted",
            partition=tp.partition,
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
            await asyncio.to_thread(record, (tp.topic, tp.partition), first, until)
        except StoreError as problem:
            log.error("log.deleted_not_stored", reason=type(problem).__name__, detail=str(problem))

    @periodic("outdated.failed")
    async def _purge_expired(self) -> None:
        """Delete expired data if this worker claims today's purge; batches run in between."""
        removed: Counter[str] = Counter()
        pieces = self._purge(datetime.now(UTC))  # this machine's: it is compared with the others
        try:
            piece = await self._blocking(lambda: next(pieces, None))
        except (ClocksDisagree, PurgeRefused) as problem:
            self.metrics.refused_purges.labels(type(problem).__name__).inc()
            log.critical("outdated.refused", reason=type(problem).__name__, detail=str(problem))
            return
        while piece:
            removed += piece
            for what, count in piece.items():
                self.metrics.outdated.labels(what).inc(count)
            piece = await self._blocking(lambda: next(pieces, None))
        if removed:
            log.info("outdated.removed", **removed)

    @periodic("rollups.failed")
    async def _roll_up(self) -> None:
        """Update the roll-ups if this worker claims the run; batches go on meanwhile."""
        steps = self._update_rollups(self._now())
        while await asyncio.to_thread(next, steps, None) is not None:
            await asyncio.sleep(0)

    async def _report_health(self) -> None:
        """Report the event loop's heartbeat, the lag, and whether the store answers.

        The store is not pinged while a batch uses it.
        """
        self.health.beat()
        lag = lag_of(self._app, self._settings.turns_topic)
        self.health.report_lag(lag)
        self.health.report_topic(
            bool(self._app.consumer.topic_partitions(self._settings.turns_topic))
        )
        self.broker_clock.at_end(
            [partition for partition, events in (lag or {}).items() if not events]
        )
        for partition, events in (lag or {}).items():
            self.metrics.lag.labels(partition).set(events)
        if not self._exclusive.locked():
            try:
                await self._blocking(self._processor.ping)
            except StoreError as problem:
                self.health.report_store(str(problem))
            else:
                self.health.report_store(None)

    async def _publish(self, committed: Committed) -> None:
        """Send all messages and wait for the brokers; then delete the outbox row."""
        await publish(await self._producer(), committed.messages)
        for item in committed.result.dead_letters:
            await self._send_dead_letter(await self._app.maybe_start_producer(), item)
        if committed.outbox_id is None:
            return
        if self._next_waits:
            self._processor.mark_published_later(committed)
        else:
            await self._blocking(lambda: self._processor.mark_published(committed))

    async def _producer(self) -> Any:
        """The client's producer, because Faust's cannot send record batches."""
        producer: Any = await self._app.maybe_start_producer()
        return producer._ensure_producer()  # noqa: SLF001

    async def _send_dead_letter(self, producer: Any, item: SetAside) -> None:
        """Send the original bytes, truncated if the brokers refuse that many."""
        letter = item.letter
        with self._tracing.dead_letter(letter) as trace:
            log.warning(
                "event.dead_letter",
                reason=letter.reason,
                partition=letter.partition,
                offset=letter.offset,
            )
            try:
                await self._send_raw(producer, letter, item.raw, trace)
            except (ProducerSendError, MessageSizeTooLargeError):
                if len(item.raw) <= MAX_EVENT_BYTES:
                    raise
                await self._send_raw(producer, letter, item.raw[:MAX_EVENT_BYTES], trace)

    async def _send_raw(
        self, producer: Any, letter: DeadLetter, value: bytes, trace: TraceHeaders
    ) -> None:
        sent = await producer.send(
            self._settings.dead_letter_topic,
            letter.dead_letter_id.encode(),
            value,
            None,
            None,
            [(DEAD_LETTER_HEADER, scores.encode(letter)), *trace],
        )
        await sent

    async def _on_assigned(self, *_: Any, **__: Any) -> None:
        self.health.joined(assigned_partitions(self._app, self._settings.turns_topic))
        self._reporting = asyncio.create_task(self._report_until_ready())

    async def _report_until_ready(self) -> None:
        """Report the health several times a second until the worker is ready.

        The timer alone would notice up to a second later that the lag is known.
        """
        for _ in range(REPORTS_AT_START):
            await asyncio.sleep(HEALTH_EVERY / REPORTS_AT_START)
            try:
                await self._report_health()
            except Exception as problem:  # noqa: BLE001  # revoked meanwhile; the timer goes on
                log.debug("health.unknown", reason=type(problem).__name__)
                return
            if not self.health.not_ready():
                return

    async def _on_revoked(self, *_: Any, **__: Any) -> None:
        self._processor.cache.invalidate()
        self.health.left()
        self.metrics.lag.clear()
        self._watermarks.clear()
        self.broker_clock.forget()

    async def _blocking(self, call: Callable[[], T], thread: ThreadPoolExecutor | None = None) -> T:
        """Run a call in a thread, with this task's context: the current span."""
        return await asyncio.get_running_loop().run_in_executor(
            thread or self._batch_thread, copy_context().run, call
        )
