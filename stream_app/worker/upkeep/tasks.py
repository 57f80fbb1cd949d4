"""The periodic tasks of a worker, as one table: ``Upkeep.tasks``."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog
from msgspec import Struct

from stream_app.errors import ClocksDisagree, DatabaseWentBack, StoreError
from stream_app.settings import Settings
from stream_app.store.lifecycle.retention import PurgeRefused
from stream_app.worker.batches.commits import Committed
from stream_app.worker.batches.lane import Lane
from stream_app.worker.batches.progress import Progress
from stream_app.worker.kafka.app import RapportApp, skip_what_is_no_event
from stream_app.worker.upkeep.health import Health
from stream_app.worker.upkeep.intent_loading import IntentReloader
from stream_app.worker.upkeep.rule_loading import RuleReloader
from stream_app.worker.upkeep.timers import Runs, Task

if TYPE_CHECKING:  # it needs ONNX Runtime, which the console has not
    from stream_app.worker.upkeep.bundle_loading import BundleReloader

log = structlog.get_logger(__name__)

HEALTH_EVERY = 1.0
REPORTS_AT_START = 10
TICK_EVERY = 1.0
TICK_AFTER = timedelta(seconds=5)
"""Grace period for deadlines; a partition less far behind counts as caught up."""
IDLE_EVERY = 2.0
RULES_EVERY = 3.0
BASELINES_EVERY = 300.0
PURGE_EVERY = 600.0
ERASED_EVERY = 5.0
POSITIONS_EVERY = 5.0
ERASED_SLACK = timedelta(minutes=10)
"""The delay that the clock of a machine that runs `rapport erase` may have."""
LEFT_EVERY = 10.0
WITHDRAWALS_EVERY = 5.0
ERASURES_EVERY = 5.0
ROLLUPS_EVERY = 60.0
ABANDONED_AFTER = 60.0
"""Seconds after which unpublished messages count as abandoned by the worker that stored them."""


class Chores(Struct, frozen=True):
    """The parts that tasks call; ``close_left``: see ``upkeep.left_bundles``."""

    rules: RuleReloader
    reload_baselines: Callable[[], None]
    purge_expired: Callable[[datetime], Iterator[Counter[str]]]
    update_rollups: Callable[[datetime], Iterator[int]]
    apply_withdrawals: Callable[[datetime], list[int]]
    finish_erasures: Callable[[Any], Coroutine[Any, Any, None]]
    close_left: Callable[[datetime, list[int]], Committed | None]
    bundles: "BundleReloader | None" = None
    intents: IntentReloader | None = None


class Upkeep:
    """The periodic tasks of one worker."""

    def __init__(
        self,
        app: RapportApp,
        settings: Settings,
        lane: Lane,
        progress: Progress,
        health: Health,
        chores: Chores,
    ) -> None:
        self.health = health
        self._app = app
        self._settings = settings
        self._lane = lane
        self._processor = lane.processor
        self._progress = progress
        self._chores = chores
        self._metrics = lane.processor.metrics
        self._baselines_at = time.monotonic()

    def tasks(self) -> list[Task]:
        """The table: name, seconds between two runs, function, who runs it."""
        return [
            Task("health", HEALTH_EVERY, self.report_health, Runs.BESIDE, fatal=True),
            Task("tick", TICK_EVERY, self._fire_due_rules, Runs.IN_PIECES),
            Task("rules", RULES_EVERY, self._reload_rules, Runs.BETWEEN),
            Task("bundles", RULES_EVERY, self._reload_bundles, Runs.IN_PIECES),
            Task("intents", RULES_EVERY, self._reload_intents, Runs.IN_PIECES),
            Task("erased", ERASED_EVERY, self._forget_erased, Runs.BETWEEN),
            Task("withdrawals", WITHDRAWALS_EVERY, self._carry_out_withdrawals, Runs.BETWEEN),
            Task("erasures", ERASURES_EVERY, self._finish_erased, Runs.ONCE),
            Task("positions", POSITIONS_EVERY, self._check_positions, Runs.BETWEEN),
            Task("left", LEFT_EVERY, self._close_left_states, Runs.IN_PIECES),
            Task("idle", IDLE_EVERY, self._flush_idle_sessions, Runs.IN_PIECES),
            Task("rollups", ROLLUPS_EVERY, self._roll_up, Runs.ONCE),
            Task("outdated", PURGE_EVERY, self._purge_expired, Runs.ONCE),
        ]

    async def crash(self, problem: Exception) -> None:
        """Stop the worker without acknowledging anything; its supervisor restarts it."""
        log.critical("worker.crash", reason=type(problem).__name__, detail=str(problem))
        self._metrics.crashes.labels(type(problem).__name__).inc()
        self._app.consumer.unacked.clear()  # otherwise the stop would wait for the batch
        await self._app.crash(problem)

    async def report_health(self) -> None:
        """Report the event loop's heartbeat, the lag, and whether the store answers.

        The store is not pinged while a batch uses it.
        """
        self.health.beat()
        lag = self._progress.observe_lag()
        self.health.report_lag(lag)
        self.health.report_topic(bool(self._app.consumer.topic_partitions(self._progress.topic)))
        for partition, events in (lag or {}).items():
            self._metrics.lag.labels(partition).set(events)
        if not self._lane.exclusive.locked():
            try:
                await self._lane.run(self._processor.ping)
            except StoreError as problem:
                self.health.report_store(str(problem))
            else:
                self.health.report_store(None)

    async def report_until_ready(self) -> None:
        """Report the health several times a second until the worker is ready.

        The timer alone would notice up to a second later that the lag is known.
        """
        for _ in range(REPORTS_AT_START):
            await asyncio.sleep(HEALTH_EVERY / REPORTS_AT_START)
            try:
                await self.report_health()
            except Exception as problem:  # noqa: BLE001  # revoked meanwhile; the timer goes on
                log.debug("health.unknown", reason=type(problem).__name__)
                return
            if not self.health.not_ready():
                return

    async def _fire_due_rules(self) -> None:
        """Fire due time rules of silent sessions, in partitions that are caught up.

        The grace period lets turns that were spoken before a deadline arrive.
        """
        now = self._progress.now()
        due, active_since = now - TICK_AFTER, now - self._settings.idle_after
        watermarks = self._progress.watermarks()
        partitions = [partition for partition, until in watermarks.items() if until > due]
        if partitions:
            await self._lane.process_due(
                "fire_due", lambda: self._processor.due.fire_due(due, active_since, partitions)
            )

    async def _reload_rules(self) -> None:
        """Reload the file of rules if it has changed; reload the baselines every few minutes."""
        await self._lane.run(self._chores.rules.reload_if_changed)
        if time.monotonic() - self._baselines_at >= BASELINES_EVERY:
            self._baselines_at = time.monotonic()
            await self._lane.run(self._chores.reload_baselines)

    async def _reload_bundles(self) -> None:
        """Load changed bundles while batches go on, and adopt them between two batches."""
        bundles = self._chores.bundles
        if bundles is not None and await asyncio.to_thread(bundles.load_if_changed):
            async with self._lane.exclusive:
                await self._lane.run(bundles.adopt)

    async def _reload_intents(self) -> None:
        """Reload the file of intents if it has changed; its sentences are encoded meanwhile."""
        intents = self._chores.intents
        if intents is not None and await asyncio.to_thread(intents.prepare):
            async with self._lane.exclusive:
                await self._lane.run(intents.adopt)

    async def _forget_erased(self) -> None:
        """Evict states and keys of erased sessions from memory."""
        since = self._progress.now() - ERASED_SLACK
        await self._lane.run(lambda: self._processor.due.forget_erased(since))

    async def _carry_out_withdrawals(self) -> None:
        """Hide or erase sessions whose consent was withdrawn, and notify consumers of erasures."""
        now = self._progress.now()
        outbox_ids = await self._lane.run(lambda: self._chores.apply_withdrawals(now))
        if outbox_ids:
            log.info("withdrawals.erased")
            await self._publish_stored(lambda: self._processor.outbox.stored(outbox_ids))

    async def _finish_erased(self) -> None:
        """Withdraw erased sessions' dead letters and store receipts."""
        await self._chores.finish_erasures(await self._lane.publisher.client())

    async def _check_positions(self) -> None:
        """Crash if an older database took the place of this one: the restart reads the log again.

        A batch is checked in its transaction; this is for partitions without new events.
        """
        positions = self._processor.positions
        try:
            await self._lane.run(positions.check)
            await skip_what_is_no_event(
                self._app,
                self._progress.topic,
                lambda ends: self._lane.run(lambda: positions.skip_to(ends)),
            )
        except DatabaseWentBack as problem:
            await self.crash(problem)

    async def _close_left_states(self) -> None:
        """Close what bundles that are no longer in force have left open."""
        for before, partitions in self._idle_before():
            while await self._close_some_left(before, partitions):
                pass

    async def _close_some_left(self, before: datetime, partitions: list[int]) -> bool:
        """Close some, between two batches; return whether there may be more."""
        async with self._lane.exclusive:
            some = await self._lane.run(lambda: self._chores.close_left(before, partitions))
            if some is not None:
                await self._lane.publish(some)
        return some is not None

    async def _flush_idle_sessions(self) -> None:
        """Publish messages that a dead worker left in the outbox, and flush idle sessions."""
        if not self._progress.assigned():
            return
        async with self._lane.exclusive:
            await self._publish_stored(lambda: self._processor.outbox.abandoned(ABANDONED_AFTER))
        for before, partitions in self._idle_before():
            await self._flush_idle(before, partitions)

    async def _flush_idle(self, before: datetime, partitions: list[int]) -> None:
        await self._lane.process_due(
            "flush_idle", lambda: self._processor.due.flush_idle(before, partitions)
        )

    async def _publish_stored(self, read: Callable[[], list[Committed]]) -> None:
        for committed in await self._lane.run(read):
            await self._lane.publish(committed)

    def _idle_before(self) -> list[tuple[datetime, list[int]]]:
        """Partitions by idle threshold: sessions last heard of before that time are idle."""
        found: dict[datetime, list[int]] = {}
        for partition, until in self._progress.watermarks().items():
            found.setdefault(until - self._settings.idle_after, []).append(partition)
        return list(found.items())

    async def _roll_up(self) -> None:
        """Update the roll-ups if this worker claims the run."""
        steps = self._chores.update_rollups(self._progress.now())
        while await asyncio.to_thread(next, steps, None) is not None:
            await asyncio.sleep(0)

    async def _purge_expired(self) -> None:
        """Delete expired data if this worker claims today's purge; batches run in between."""
        removed: Counter[str] = Counter()
        # by this machine's clock: it is compared with the others
        pieces = self._chores.purge_expired(datetime.now(UTC))
        try:
            piece = await self._lane.run(lambda: next(pieces, None))
        except (ClocksDisagree, PurgeRefused) as problem:
            self._metrics.refused_purges.labels(type(problem).__name__).inc()
            log.critical("outdated.refused", reason=type(problem).__name__, detail=str(problem))
            return
        while piece:
            removed += piece
            for what, count in piece.items():
                self._metrics.outdated.labels(what).inc(count)
            piece = await self._lane.run(lambda: next(pieces, None))
        if removed:
            log.info("outdated.removed", **removed)
