"""The way of a batch: decoded, encoded ahead, scored, committed. Blocks; runs in a thread.

A batch that fails is bisected down to single events, in log order, so that one event (a poison
pill) does not block its partition. An event that fails alone is dead-lettered with the name of the
error, but only if a self-test (a synthetic session through model and database) succeeds and the
event then fails again. Otherwise the error is raised, nothing is acknowledged, and the events are
read again.

A batch is also split if other workers keep advancing its sessions, which happens when events of a
session have different keys: a shorter batch is calculated faster, so fewer commits come between.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import structlog
from msgspec import Struct, structs

from stream_app.contracts import plausible
from stream_app.contracts.events import Event
from stream_app.contracts.plausible import PlausibleTimes
from stream_app.core.pipeline.pipeline import Pipeline, Received, parts
from stream_app.core.session.batch import ShadowScore
from stream_app.core.session.ports import Encoding, SessionStore
from stream_app.core.session.session_state import SessionState
from stream_app.errors import ContractError, StaleState
from stream_app.tracing.port import OFF, Tracing
from stream_app.worker.batches.after_commit import AfterCommit
from stream_app.worker.batches.commits import Commits, Committed, Outbox
from stream_app.worker.batches.due_work import DueWork
from stream_app.worker.batches.metrics import Stages, WorkerMetrics
from stream_app.worker.batches.outgoing import Outgoing, OutputTopics
from stream_app.worker.batches.poison import as_contract_error, may_be_poison
from stream_app.worker.batches.positions import Positions
from stream_app.worker.batches.retries import Retries
from stream_app.worker.batches.scoring import Scoring
from stream_app.worker.batches.self_test import SelfTest
from stream_app.worker.batches.session_cache import CACHED_SESSIONS, SessionCache

log = structlog.get_logger(__name__)


class BatchSettings(Struct, frozen=True):
    """Options of processing; ``retry_for``: seconds, ``cached``: sessions in memory."""

    topics: OutputTopics
    retry_for: float
    cached: int = CACHED_SESSIONS
    times: PlausibleTimes = plausible.DEFAULT
    group: str = "rapport"
    hide_withdrawn: bool = True


class Clocks(Struct, frozen=True):
    """The time of day, and seconds that never jump."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic


CLOCKS: Final = Clocks()


class BatchProcessor:
    """Decodes, scores and commits. Not thread-safe, except for ``prepare``.

    Its parts are public: timers use them between two batches.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        store: SessionStore,
        settings: BatchSettings,
        metrics: WorkerMetrics,
        clocks: Clocks = CLOCKS,
        tracing: Tracing = OFF,
        keep_shadow: Callable[[Sequence[ShadowScore]], None] = lambda _: None,
    ) -> None:
        self._pipeline = pipeline
        self._store = store
        self._times = settings.times
        self._now = clocks.now
        self.stages = stages = Stages(metrics, tracing)
        self.metrics = metrics
        self.cache = SessionCache(settings.cached)
        self.retries = Retries(settings.retry_for, metrics)
        self.positions = Positions(store, self.retries, settings.group)
        self.outbox = Outbox(store, self.retries, clocks.monotonic)
        self.outgoing = Outgoing(
            settings.topics, hide_withdrawn=settings.hide_withdrawn, tracing=tracing
        )
        self.scoring = Scoring(pipeline, store, self.cache, self.retries, stages, clocks.now)
        after = AfterCommit(pipeline, metrics, keep_shadow)
        self._commits = Commits(
            store, self.outgoing, self.outbox, self.cache, self.retries, stages, after
        )
        self.self_test = SelfTest(pipeline, self._commits)
        self.due = DueWork(pipeline, store, self.cache, self._commits, self.self_test)

    def prepare(self, records: Iterable[Received]) -> list[Received]:
        """Decode and time-check a batch, and encode its turns whose consent is known.

        Call it in the order of processing; it may run concurrently with the other methods.
        ``records`` may be a lazy iterator that decodes in the calling thread. Events outside the
        range of plausible times become dead letters.
        """
        with self.stages.stage("decode"):
            now = self._now()
            batch = [self._check_time(received, now) for received in records]
        self.metrics.batch_events.observe(len(batch))
        with self.stages.stage("encode", batch):
            encodings = self._encode_ahead([received.event for received in batch])
        return [
            structs.replace(received, encoding=encoding) if encoding is not None else received
            for received, encoding in zip(batch, encodings, strict=True)
        ]

    def handle_in_parts(self, batch: list[Received]) -> list[Committed]:
        """Process a batch; an edit or a deletion needs what precedes it to be committed.

        Raises:
            Exception: as ``handle_bisecting``.
        """
        return [done for part in parts(batch) for done in self.handle_bisecting(part)]

    def handle_bisecting(self, batch: list[Received]) -> list[Committed]:
        """Process a batch, in several parts if it fails as a whole; returns the committed parts.

        Raises:
            Exception: an error that no event caused; earlier parts may already be committed.
        """
        try:
            return [self.handle(batch)]
        except Exception as problem:
            contended = isinstance(problem, StaleState) and len(batch) > 1
            if not contended and not may_be_poison(problem):
                raise
            log.warning("batch.split", events=len(batch), reason=type(problem).__name__)
        if len(batch) == 1:
            return [self._handle_single(batch[0])]
        middle = len(batch) // 2
        return self.handle_bisecting(batch[:middle]) + self.handle_bisecting(batch[middle:])

    def handle(self, batch: list[Received]) -> Committed:
        """Process and commit one batch in one transaction.

        Raises:
            StoreUnavailable: the database was unavailable for longer than the retry time.
            DatabaseWentBack: the database lacks events before this batch.
            StaleState: other workers kept advancing its sessions; split the batch. A single event
                is repeated for the retry time.
            StoreError: the database refused the batch.
        """
        self.cache.clear_if_invalid()
        positions = self.positions.after(batch)
        committed = self._commits.commit(lambda: self.scoring.process(batch), positions, batch)
        self.positions.committed(positions)
        return committed

    def _handle_single(self, received: Received) -> Committed:
        if isinstance(received.event, ContractError):
            return self._handle_refused(received)
        self.self_test.run()
        try:
            return self.handle([received])
        except Exception as problem:
            if not may_be_poison(problem):
                raise
            rejection = as_contract_error(problem)
        log.error(
            "event.unprocessable",
            detail=rejection.detail,
            partition=received.source.partition,
            offset=received.source.offset,
        )
        return self.handle([structs.replace(received, event=rejection, encoding=None)])

    def _handle_refused(self, received: Received) -> Committed:
        """Set a refused event aside, also if the turns that waited for it cannot be processed."""
        try:
            return self.handle([received])
        except Exception as problem:
            if received.refused is None or not may_be_poison(problem):
                raise
        return self.handle([structs.replace(received, gap=False)])

    def ping(self) -> None:
        """Raise StoreUnavailable if the store does not answer; does not retry."""
        self._store.ping()

    def _check_time(self, received: Received, now: datetime) -> Received:
        event = self._times.checked(received.event, received.appended_at or now)
        return received if event is received.event else structs.replace(received, event=event)

    def _encode_ahead(self, events: Sequence[Event | ContractError]) -> list[Encoding | None]:
        try:
            return self._pipeline.encodings.ahead(events, self._cached_state)
        except Exception as problem:
            if not may_be_poison(problem):
                raise
            return [None] * len(events)  # it fails again in ``handle``, where it is bisected

    def _cached_state(self, session_id: str) -> SessionState | None:
        """A session's cached state; may be called from any thread."""
        cached = self.cache.peek(session_id)
        return cached.state if cached is not None else None
