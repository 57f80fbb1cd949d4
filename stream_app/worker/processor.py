"""Takes a batch from its records to the committed transaction. Blocks: it runs in a thread.

Also holds the session cache, which is cleared whenever partitions move or something fails: the
database is the source of truth.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

import structlog
from msgspec import Struct, structs
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_delay,
    stop_any,
    stop_when_event_set,
    wait_random_exponential,
)

from stream_app.contracts import scores
from stream_app.core.batch import BatchResult
from stream_app.core.pipeline import Pipeline, Received
from stream_app.core.ports import Message, SessionStore
from stream_app.core.session_state import SessionState, Versioned
from stream_app.errors import ContractError, StaleState, StoreError, StoreUnavailable
from stream_app.worker.metrics import WorkerMetrics

log = structlog.get_logger(__name__)
T = TypeVar("T")


class OutTopics(Struct, frozen=True):
    """Where scores and alerts are published."""

    turn_scores: str
    session_scores: str
    alerts: str


class Committed(Struct, frozen=True):
    """A batch that is committed, with the messages to publish."""

    result: BatchResult
    messages: list[Message]
    outbox_id: int | None


class SessionCache:
    """The most recently used session states, at most ``limit``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._states: OrderedDict[str, Versioned] = OrderedDict()
        self._outdated = threading.Event()

    def __len__(self) -> int:
        return len(self._states)

    def get(self, session_id: str) -> Versioned | None:
        """Return the cached state, if any."""
        found = self._states.get(session_id)
        if found is not None:
            self._states.move_to_end(session_id)
        return found

    def peek(self, session_id: str) -> Versioned | None:
        """Like ``get``, from any thread and without counting as a use."""
        return self._states.get(session_id)

    def put(self, states: dict[str, Versioned]) -> None:
        """Cache these states and evict the least recently used ones."""
        for session_id, versioned in states.items():
            self._states[session_id] = versioned
            self._states.move_to_end(session_id)
        while len(self._states) > self._limit:
            self._states.popitem(last=False)

    def clear(self) -> None:
        """Evict everything."""
        self._states.clear()

    def outdate(self) -> None:
        """Have the cache cleared before the next batch; may be called from any thread."""
        self._outdated.set()

    def refresh(self) -> None:
        """Clear the cache if ``outdate`` was called."""
        if self._outdated.is_set():
            self._outdated.clear()
            self.clear()


class BatchProcessor:
    """Decodes, scores and commits. Not thread-safe except for ``read``: one call at a time."""

    def __init__(
        self,
        pipeline: Pipeline,
        store: SessionStore,
        topics: OutTopics,
        cache: SessionCache,
        retry_for: float,
        metrics: WorkerMetrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pipeline = pipeline
        self._store = store
        self._topics = topics
        self._retry_for = retry_for
        self._clock = clock
        self._first_seen: dict[int, float] = {}
        self._ending = threading.Event()
        self.metrics = metrics
        self.cache = cache

    def read(self, records: Iterable[Received]) -> list[Received]:
        """Encode a batch as far as consent is known, while the one before is being handled.

        Call it in the order of the log; it may run beside the other calls. ``records`` may be an
        iterator: then they are decoded here, in the calling thread.
        """
        with self.metrics.timed("decode"):
            batch = list(records)
        self.metrics.batch_events.observe(len(batch))
        with self.metrics.timed("encode"):
            events = [received.event for received in batch]
            encodings = self._pipeline.encodings.ahead(events, self._in_memory)
        return [
            structs.replace(received, encoding=encoding) if encoding is not None else received
            for received, encoding in zip(batch, encodings, strict=True)
        ]

    def handle(self, batch: list[Received]) -> Committed:
        """Process and commit one batch.

        Raises:
            StoreUnavailable: the database stayed away for longer than the retry time.
            StoreError: the database refused the batch.
        """
        self.cache.refresh()
        found = {r.event.session_id for r in batch if not isinstance(r.event, ContractError)}
        session_ids = sorted(found)
        committed = self._committed(lambda: self._processed(batch, session_ids))
        for fate, count in committed.result.counts.items():
            self.metrics.events.labels(fate).inc(count)
        for item in committed.result.dead_letters:
            self.metrics.dead_letters.labels(item.letter.reason).inc()
        return committed

    def flush_idle(self, before: datetime, partitions: Sequence[int]) -> Committed | None:
        """Flush and commit sessions that were last active before ``before``; None without any."""
        self.cache.refresh()
        if not self._idle_sessions(before, partitions):
            return None
        return self._committed(
            lambda: self._pipeline.flush_idle(self._idle_sessions(before, partitions))
        )

    def fire_due(
        self, due: datetime, active_since: datetime, partitions: Sequence[int]
    ) -> Committed | None:
        """Fire the time rules that are due in silent sessions, and commit; None without any."""
        self.cache.refresh()
        if not self._due_sessions(due, active_since, partitions):
            return None
        committed = self._committed(
            lambda: self._pipeline.fire_due(self._due_sessions(due, active_since, partitions), due)
        )
        self.metrics.ticks.inc(len(committed.result.sessions))
        return committed

    def left_behind(self, after: float) -> list[Committed]:
        """Batches that another worker committed but has not published for ``after`` seconds.

        Counted from when this worker first saw them, by its own monotonic clock: wall clocks
        differ between machines, and jump.
        """
        now = self._clock()
        waiting = self._retrying(self._store.outbox_ids)
        self._first_seen = {key: self._first_seen.get(key, now) for key in waiting}
        old = [key for key, since in self._first_seen.items() if now - since >= after]
        entries = self._retrying(lambda: self._store.outbox_entries(old[:100])) if old else []
        return [Committed(BatchResult(), entry.messages, entry.id) for entry in entries]

    def published(self, committed: Committed) -> None:
        """Delete the outbox row of a batch whose messages are published."""
        outbox_id = committed.outbox_id
        if outbox_id is not None:
            self._retrying(lambda: self._store.sent([outbox_id]))

    def end(self) -> None:
        """Stop retrying, as the worker is ending; may be called from any thread."""
        self._ending.set()

    def ping(self) -> None:
        """Raise StoreUnavailable if the store does not answer; does not retry."""
        self._store.ping()

    def _in_memory(self, session_id: str) -> SessionState | None:
        """A session's cached state; may be called from any thread."""
        cached = self.cache.peek(session_id)
        return cached.state if cached is not None else None

    def _processed(self, batch: list[Received], session_ids: list[str]) -> BatchResult:
        with self.metrics.timed("load"):
            states = self._states(session_ids)
            erased = self._erased([key for key in session_ids if key not in states])
        with self.metrics.timed("score"):
            if not erased:
                return self._pipeline.process(batch, states)
            kept = [received for received in batch if _session_of(received) not in erased]
            result = self._pipeline.process(kept, states)
            result.counts["erased"] += len(batch) - len(kept)
            return result

    def _erased(self, session_ids: list[str]) -> set[str]:
        """Those of some sessions without a state that were erased; one with a state was not."""
        return self._retrying(lambda: self._store.erased(session_ids))

    def _states(self, session_ids: list[str]) -> dict[str, Versioned]:
        cached = {key: self.cache.get(key) for key in session_ids}
        states = {key: versioned for key, versioned in cached.items() if versioned is not None}
        missing = [key for key in session_ids if key not in states]
        self.metrics.cache_hits.inc(len(states))
        self.metrics.cache_misses.inc(len(missing))
        loaded = self._retrying(lambda: self._store.load_states(missing, self._pipeline.bundle_id))
        return states | loaded

    def _idle_sessions(self, before: datetime, partitions: Sequence[int]) -> dict[str, Versioned]:
        found = self._retrying(
            lambda: self._store.quiet_sessions(self._pipeline.bundle_id, before, partitions)
        )
        return {key: self.cache.get(key) or versioned for key, versioned in found.items()}

    def _due_sessions(
        self, due: datetime, active_since: datetime, partitions: Sequence[int]
    ) -> dict[str, Versioned]:
        bundle = self._pipeline.bundle_id
        found = self._retrying(
            lambda: self._store.due_sessions(bundle, due, active_since, partitions)
        )
        return {key: self.cache.get(key) or versioned for key, versioned in found.items()}

    def _committed(self, work: Callable[[], BatchResult]) -> Committed:
        """Do the work and commit it; once more from the database if a cached state was stale."""
        try:
            try:
                return self._commit(work())
            except StaleState as stale:
                log.warning("state.stale", detail=str(stale))
                self.metrics.stale_states.inc()
                self.cache.clear()
                return self._commit(work())
        except BaseException:
            self.cache.clear()
            raise

    def _commit(self, result: BatchResult) -> Committed:
        messages = list(self._messages(result))
        with self.metrics.timed("commit"):
            outbox_id = self._retrying(lambda: self._store.commit(result, messages))
        self.cache.put(result.sessions)
        self.metrics.cached_sessions.set(len(self.cache))
        for alert in result.alerts:
            self.metrics.alerts.labels(alert.state.value).inc()
        return Committed(result, messages, outbox_id)

    def _messages(self, result: BatchResult) -> Iterator[Message]:
        topics = self._topics
        for topic, outputs in (
            (topics.turn_scores, result.turn_scores),
            (topics.session_scores, result.session_scores),
            (topics.alerts, result.alerts),
        ):
            for output in outputs:
                yield Message(topic, output.session_id.encode(), scores.encode(output))

    def _retrying(self, call: Callable[[], T]) -> T:
        """Retry while the database is unavailable, with back-off and jitter."""
        retrying = Retrying(
            retry=retry_if_exception_type(StoreUnavailable),
            wait=wait_random_exponential(multiplier=0.1, max=5.0),
            stop=stop_any(stop_after_delay(self._retry_for), stop_when_event_set(self._ending)),
            before_sleep=self._say_retry,
            sleep=sleep_using_event(self._ending),
            reraise=True,
        )
        try:
            return retrying(call)
        except StaleState:
            raise
        except StoreError:
            self.metrics.store_errors.inc()
            raise

    def _say_retry(self, attempt: RetryCallState) -> None:
        self.metrics.retries.inc()
        log.warning(
            "store.unavailable",
            attempt=attempt.attempt_number,
            waited_s=attempt.seconds_since_start,
        )


def _session_of(received: Received) -> str | None:
    event = received.event
    return None if isinstance(event, ContractError) else event.session_id
