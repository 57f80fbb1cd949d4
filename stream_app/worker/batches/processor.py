"""Processes a batch from its records to the committed transaction. Blocks; runs in a thread.

Also contains the session cache, which is cleared after rebalances and failures: the database is the
source of truth.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeVar

import structlog
from msgspec import Struct, structs
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_attempt,
    stop_after_delay,
    stop_any,
    stop_when_event_set,
    wait_random_exponential,
)

from stream_app.contracts import plausible, scores
from stream_app.contracts.events import Event, SessionEnd, Turn
from stream_app.contracts.plausible import PlausibleTimes
from stream_app.contracts.scores import Alert
from stream_app.core.pipeline.pipeline import UNHEARD, Pipeline, Received, is_revision
from stream_app.core.session.alerting import Alerting
from stream_app.core.session.batch import BatchResult, ShadowScore
from stream_app.core.session.origin import Origin, refuse_contradiction
from stream_app.core.session.past import PastSession
from stream_app.core.session.ports import Encoding, LogPosition, Message, SessionStore
from stream_app.core.session.session_state import SessionState, Versioned
from stream_app.errors import (
    ContractError,
    DatabaseWentBack,
    StaleState,
    StoreError,
    StoreUnavailable,
)
from stream_app.store.stream.log_positions import StartOffsets, TopicPartition
from stream_app.tracing.port import OFF, Tracing
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.batches.poison import as_contract_error, may_be_poison
from stream_app.worker.batches.self_test import synthetic_session
from stream_app.worker.batches.trace_origins import TraceOrigins

log = structlog.get_logger(__name__)
T = TypeVar("T")
States = dict[str, Versioned]

EPOCH: Final = datetime.fromtimestamp(0, UTC)
CHECKED_PER_QUERY: Final = 1000
STALE_ATTEMPTS: Final = 6
"""Attempts to commit a batch whose sessions another worker keeps advancing, before it is split."""
SESSIONS_PER_ROUND: Final = 200
"""Number of sessions that a timer loads at once."""


class OutputTopics(Struct, frozen=True):
    """The topics of scores and alerts."""

    turn_scores: str
    session_scores: str
    alerts: str


class Committed(Struct, frozen=True):
    """A committed batch with the messages to publish."""

    result: BatchResult
    messages: list[Message]
    outbox_id: int | None


class SessionCache:
    """The most recently used session states, at most ``limit``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._states: OrderedDict[str, Versioned] = OrderedDict()
        self._invalid = threading.Event()

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

    def discard(self, session_ids: Iterable[str]) -> None:
        """Evict these."""
        for session_id in session_ids:
            self._states.pop(session_id, None)

    def session_ids(self) -> list[str]:
        """Whose states are cached."""
        return list(self._states)

    def clear(self) -> None:
        """Evict everything."""
        self._states.clear()

    def invalidate(self) -> None:
        """Request that the cache is cleared before the next batch; callable from any thread."""
        self._invalid.set()

    def clear_if_invalid(self) -> None:
        """Clear the cache if ``invalidate`` was called."""
        if self._invalid.is_set():
            self._invalid.clear()
            self.clear()


class BatchProcessor:
    """Decodes, scores and commits. Not thread-safe, except for ``prepare``."""

    def __init__(
        self,
        pipeline: Pipeline,
        store: SessionStore,
        topics: OutputTopics,
        cache: SessionCache,
        retry_for: float,
        metrics: WorkerMetrics,
        clock: Callable[[], float] = time.monotonic,
        times: PlausibleTimes = plausible.DEFAULT,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        group: str = "rapport",
        *,
        hide_withdrawn: bool = True,
        tracing: Tracing = OFF,
        keep_shadow: Callable[[Sequence[ShadowScore]], None] = lambda _: None,
    ) -> None:
        self._pipeline = pipeline
        self._store = store
        self._topics = topics
        self._retry_for = retry_for
        self._clock = clock
        self._times = times
        self._now = now
        self._group = group
        self._hide_withdrawn = hide_withdrawn
        self._tracing = tracing
        self._keep_shadow = keep_shadow
        self._stored: dict[TopicPartition, int] = {}
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._first_seen: dict[int, float] = {}
        self._failing: set[str] = set()
        self._reported: set[tuple[str, str]] = set()
        self._published: list[int] = []
        self._ending = threading.Event()
        self.metrics = metrics
        self.cache = cache

    def prepare(self, records: Iterable[Received]) -> list[Received]:
        """Decode and time-check a batch, and encode its turns whose consent is known.

        Call it in the order of processing; it may run concurrently with the other methods.
        ``records`` may be a lazy iterator that decodes in the calling thread. Events outside the
        range of plausible times become dead letters.
        """
        with self.metrics.timed("decode"), self._tracing.stage("decode"):
            now = self._now()
            batch = [self._check_time(received, now) for received in records]
        self.metrics.batch_events.observe(len(batch))
        with self.metrics.timed("encode"), self._tracing.stage("encode", batch):
            events = [received.event for received in batch]
            encodings = self._encode_ahead(events)
        return [
            structs.replace(received, encoding=encoding) if encoding is not None else received
            for received, encoding in zip(batch, encodings, strict=True)
        ]

    def handle(self, batch: list[Received]) -> Committed:
        """Process and commit one batch.

        Raises:
            StoreUnavailable: the database was unavailable for longer than the retry time.
            DatabaseWentBack: the database lacks events before this batch.
            StaleState: other workers kept advancing its sessions; split the batch. A single event
                is repeated for the retry time.
            StoreError: the database refused the batch.
        """
        self.cache.clear_if_invalid()
        session_ids = _sessions_of(batch)
        positions = self._positions(batch)
        committed = self._commit_with_retries(
            lambda: self._process(batch, session_ids), positions, batch, single=len(batch) == 1
        )
        self._stored.update({(at.topic, at.partition): at.next_offset for at in positions})
        self._report_rules()
        if unheard := committed.result.counts[UNHEARD]:
            log.error("session.unheard", turns=unheard)
        for fate, count in committed.result.counts.items():
            self.metrics.events.labels(fate).inc(count)
        for item in committed.result.dead_letters:
            self.metrics.dead_letters.labels(item.letter.reason).inc()
        return committed

    def continue_from(self, read: Callable[[], StartOffsets]) -> StartOffsets:
        """Read where to start after a rebalance; may be called from any thread.

        Batches from before may still be in progress: the database must contain what precedes them.

        Raises:
            DatabaseWentBack: it does not; those batches will be refused.
        """
        before = dict(self._stored)
        found = self.retrying(read)
        missing = sum(max(0, before.get(at, 0) - offset) for at, offset in found.stored.items())
        if missing:
            raise DatabaseWentBack(missing)
        for at, offset in found.stored.items():
            self._stored[at] = max(offset, self._stored.get(at, 0))
        self._assigned = frozenset(found.stored)
        return found

    def check_positions(self) -> None:
        """Check that the database still contains what was committed, also without new events.

        Raises:
            DatabaseWentBack: it does not.
        """
        known = [
            LogPosition(self._group, *at, offset, offset)
            for at, offset in self._stored.copy().items()
            if at in self._assigned
        ]
        self.retrying(lambda: self._store.check_positions(known))

    def skip_to(self, ends: Mapping[TopicPartition, int]) -> None:
        """Store that the log contains no event up to these offsets.

        Raises:
            DatabaseWentBack: the database lacks events before them.
        """
        positions = [
            LogPosition(self._group, *place, offset, self._stored.get(place) or None)
            for place, offset in ends.items()
        ]
        self.retrying(lambda: self._store.commit(BatchResult(), (), positions))
        self._stored.update(ends)

    def run_self_test(self) -> None:
        """Process a synthetic session of each bundle with the database, and roll it back.

        Raises:
            Exception: this fails, too, so no event is the cause.
        """
        for bundle in self._pipeline.bundles:
            session = synthetic_session()
            states = self._pipeline.new_states(_sessions_of(session), bundle)
            result = self._pipeline.process(session, states)
            messages = list(self._messages(result))
            self.retrying(partial(self._store.dry_run, result, messages))

    def flush_idle(self, before: datetime, partitions: Sequence[int]) -> Committed | None:
        """Flush and commit sessions last heard of before ``before``; None if there are none."""
        self.cache.clear_if_invalid()
        return self._commit_skipping_failures(
            lambda: self._idle_sessions(before, partitions), self._pipeline.flush_idle
        )

    def fire_due(
        self, due: datetime, active_since: datetime, partitions: Sequence[int]
    ) -> Committed | None:
        """Fire and commit the due time rules of silent sessions; None if there are none."""
        self.cache.clear_if_invalid()
        committed = self._commit_skipping_failures(
            lambda: self._due_sessions(due, active_since, partitions),
            lambda states: self._fire_each(states, due),
        )
        self._report_rules()
        if committed is not None:
            self.metrics.ticks.inc(len(committed.result.sessions))
        return committed

    def alert_messages(self, alerts: Sequence[Alert]) -> list[Message]:
        """The messages of alerts that end without an event or a timer of their session."""
        return list(self._messages(BatchResult(alerts=list(alerts))))

    def abandoned_batches(self, after: float) -> list[Committed]:
        """Batches that another worker has committed and not published for ``after`` seconds.

        The time is measured with this worker's monotonic clock, from when it first saw them,
        because wall clocks differ between machines and jump.
        """
        now = self._clock()
        waiting = self.retrying(self._store.outbox_ids)
        self._first_seen = {key: self._first_seen.get(key, now) for key in waiting}
        old = [key for key, since in self._first_seen.items() if now - since >= after]
        return self.stored(old[:100]) if old else []

    def stored(self, outbox_ids: Sequence[int]) -> list[Committed]:
        """The messages of these outbox rows, to be published."""
        entries = self.retrying(lambda: self._store.outbox_entries(outbox_ids))
        return [Committed(BatchResult(), entry.messages, entry.id) for entry in entries]

    def forget_erased(self, since: datetime) -> None:
        """Evict the states and keys of cached sessions that were erased since then."""
        if self.retrying(lambda: self._store.erasures_since(since)):
            cached = self.cache.session_ids()
            for first in range(0, len(cached), CHECKED_PER_QUERY):
                some = cached[first : first + CHECKED_PER_QUERY]
                self.cache.discard(self._erased(some))
            if self._pipeline.shadow is not None:
                self._pipeline.shadow.forget_all()

    def mark_published(self, committed: Committed) -> None:
        """Delete the outbox row of a batch whose messages are published."""
        self.mark_published_later(committed)
        if self._published:
            self.retrying(lambda: self._store.delete_outbox_entries(self._published))
            self._published.clear()

    def mark_published_later(self, committed: Committed) -> None:
        """Delete its outbox row with the next commit, which saves a transaction.

        If the worker dies before, its messages are published again, as after any crash between the
        commit and the deletion.
        """
        if committed.outbox_id is not None:
            self._published.append(committed.outbox_id)

    def stop_retrying(self) -> None:
        """Stop retrying because the worker stops; may be called from any thread."""
        self._ending.set()

    def ping(self) -> None:
        """Raise StoreUnavailable if the store does not answer; does not retry."""
        self._store.ping()

    def _cached_state(self, session_id: str) -> SessionState | None:
        """A session's cached state; may be called from any thread."""
        cached = self.cache.peek(session_id)
        return cached.state if cached is not None else None

    def _process(self, batch: list[Received], session_ids: list[str]) -> BatchResult:
        with self.metrics.timed("load"), self._tracing.stage("load"):
            states = self._states(session_ids)
            unknown = [key for key in session_ids if key not in states]
            erased = self._erased(unknown)
            states |= self._withdrawn_before(unknown)
            begun = self.retrying(lambda: self._store.find_begun(unknown))
            batch = [_compared(received, begun, states) for received in batch]
            self._note_begun(batch, states, begun)
        with self.metrics.timed("score"), self._tracing.stage("score", batch):
            kept = [received for received in batch if received.session_id not in erased]
            result = self._pipeline.process(kept, states, self._past(kept))
        if erased:
            result.counts["erased"] += len(batch) - len(kept)
        self._set_seen_at(result, kept)
        return result

    def _past(self, batch: list[Received]) -> dict[str, PastSession]:
        """What is stored of sessions of which a turn is edited or deleted."""
        return {
            event.session_id: self.retrying(partial(self._store.past_session, event.session_id))
            for received in batch
            if is_revision(event := received.event)
        }

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

    def _set_seen_at(self, result: BatchResult, batch: list[Received]) -> None:
        """Set when each session was last heard of: the append time, or now without one."""
        now = self._now()
        seen: dict[str, datetime] = {}
        for received in batch:
            if (key := received.session_id) is not None:
                seen[key] = max(received.appended_at or now, seen.get(key, EPOCH))
        for key, versioned in result.sessions.items():
            versioned.seen_at = seen[key]

    def _erased(self, session_ids: list[str]) -> set[str]:
        """Which of these sessions were erased; only needed for sessions without a state."""
        return self.retrying(lambda: self._store.find_erased(session_ids))

    def _withdrawn_before(self, session_ids: list[str]) -> States:
        """New states of sessions whose consent was withdrawn, so that it stays withdrawn.

        Their earlier state has expired or belongs to another bundle.
        """
        found = self.retrying(lambda: self._store.find_withdrawn(session_ids))
        bundle = self._pipeline.bundle_id
        return {
            key: Versioned(
                SessionState(
                    key,
                    bundle,
                    consent=False,
                    withdrawn=True,
                    consent_version=version,
                    undecided=True,
                )
            )
            for key, version in found.items()
        }

    def _note_begun(
        self, batch: list[Received], states: States, begun: Mapping[str, Origin]
    ) -> None:
        """Add states of sessions that have turns but no state under this bundle, and now an end.

        Otherwise the end would be one before the first turn.
        """
        bundle = self._pipeline.bundle_id
        for received in batch:
            if isinstance(end := received.event, SessionEnd) and end.session_id in begun:
                new = Versioned(SessionState(end.session_id, bundle, undecided=True))
                state = states.setdefault(end.session_id, new).state
                state.started_at = begun[end.session_id].started_at

    def _states(self, session_ids: list[str]) -> dict[str, Versioned]:
        cached = {key: self.cache.get(key) for key in session_ids}
        states = {key: versioned for key, versioned in cached.items() if versioned is not None}
        missing = [key for key in session_ids if key not in states]
        self.metrics.cache_hits.inc(len(states))
        self.metrics.cache_misses.inc(len(missing))
        loaded = self.retrying(lambda: self._store.load_states(missing, self._pipeline.bundle_id))
        return states | loaded

    def _idle_sessions(self, before: datetime, partitions: Sequence[int]) -> States:
        found = self.retrying(
            lambda: self._store.idle_sessions(
                self._pipeline.bundle_id,
                before,
                partitions,
                SESSIONS_PER_ROUND + len(self._failing),
            )
        )
        return self._usable(found)

    def _due_sessions(
        self, due: datetime, active_since: datetime, partitions: Sequence[int]
    ) -> States:
        bundle = self._pipeline.bundle_id
        found = self.retrying(
            lambda: self._store.due_sessions(
                bundle, due, active_since, partitions, SESSIONS_PER_ROUND + len(self._failing)
            )
        )
        return self._usable(found)

    def _usable(self, found: States) -> States:
        """Prefer cached states, and leave out sessions that failed earlier."""
        return {
            key: self.cache.get(key) or versioned
            for key, versioned in found.items()
            if key not in self._failing
        }

    def _report_rules(self) -> None:
        """Count rules that failed to evaluate; log each of them once per file of rules."""
        for bundle in self._pipeline.bundles:
            self._report_rules_of(bundle.environment.alerting)

    def _report_rules_of(self, alerting: Alerting) -> None:
        for source, count in alerting.failures.items():
            for rule in alerting.rules.rules:
                if not rule.uses(source):
                    continue
                self.metrics.rule_failures.labels(rule.name).inc(count)
                digest = alerting.rules.digest
                if (digest, rule.name) not in self._reported:
                    self._reported.add((digest, rule.name))
                    log.error("rule.failed", rule=rule.name, expression=source, digest=digest)
        alerting.failures.clear()

    def _fire_each(self, states: States, due: datetime) -> BatchResult:
        """Fire each session at its own event time, advanced by the elapsed service time."""
        result = BatchResult()
        for key, versioned in states.items():
            own, seen_at = versioned.state.last_activity_at, versioned.seen_at
            if own is None or seen_at is None:
                continue
            try:
                at = own + (due - seen_at)
            except OverflowError:
                continue
            found = self._pipeline.fire_due({key: versioned}, at)
            result.alerts += found.alerts
            result.session_scores += found.session_scores
            result.sessions |= found.sessions
            result.left += found.left
        return result

    def _commit_skipping_failures(
        self, find: Callable[[], States], work: Callable[[States], BatchResult]
    ) -> Committed | None:
        """Find sessions, do the work and commit it, excluding sessions for which it fails."""
        if not find():
            return None
        try:
            return self._commit_with_retries(lambda: work(find()))
        except Exception as problem:
            if not may_be_poison(problem):
                raise
            self.run_self_test()
        for session_id, versioned in find().items():
            try:
                result = work({session_id: versioned})
                self._store.dry_run(result, list(self._messages(result)))
            except Exception as problem:
                if not may_be_poison(problem):
                    raise
                self._failing.add(session_id)
                log.error("session.failed", detail=as_contract_error(problem).detail)
        return self._commit_with_retries(lambda: work(find())) if find() else None

    def _commit_with_retries(
        self,
        work: Callable[[], BatchResult],
        positions: Sequence[LogPosition] = (),
        batch: Sequence[Received] = (),
        *,
        single: bool = False,
    ) -> Committed:
        """Do the work and commit it; repeat it from the database if a state was stale.

        The other worker made progress meanwhile, so workers of one session take turns. ``single``:
        the work cannot be split into shorter parts, which would meet fewer other commits.
        """
        enough = stop_after_delay(self._retry_for) if single else stop_after_attempt(STALE_ATTEMPTS)
        trying = Retrying(
            retry=retry_if_exception_type(StaleState),
            wait=wait_random_exponential(multiplier=0.05, max=2.0),
            stop=stop_any(enough, stop_when_event_set(self._ending)),
            before_sleep=self._log_stale,
            sleep=sleep_using_event(self._ending),
            reraise=True,
        )
        try:
            return trying(lambda: self._commit(work(), positions, batch))
        except BaseException:
            self.cache.clear()
            raise

    def _log_stale(self, attempt: RetryCallState) -> None:
        stale = attempt.outcome.exception() if attempt.outcome else None
        log.warning("state.stale", detail=str(stale))
        self.metrics.stale_states.inc()
        self.cache.clear()

    def _commit(
        self, result: BatchResult, positions: Sequence[LogPosition], batch: Sequence[Received]
    ) -> Committed:
        messages = list(self._messages(result, batch))
        with self.metrics.timed("commit"), self._tracing.stage("commit", batch):
            outbox_id = self.retrying(
                lambda: self._store.commit(result, messages, positions, self._published)
            )
            self._published.clear()
        self.cache.put(result.sessions)
        self.metrics.cached_sessions.set(len(self.cache))
        for alert in result.alerts:
            self.metrics.alerts.labels(alert.state.value).inc()
        self._finish_shadow(result)
        return Committed(result, messages, outbox_id)

    def _finish_shadow(self, result: BatchResult) -> None:
        """Store the shadow's scores after the commit; faults are counted and go no further."""
        shadow = self._pipeline.shadow
        if shadow is None:
            return
        try:
            if result.shadow_scores:
                self._keep_shadow(result.shadow_scores)
                self.metrics.shadow_scores.inc(len(result.shadow_scores))
        except Exception as problem:  # noqa: BLE001  # never disturbs the bundle in force
            self.metrics.shadow_faults.inc()
            log.warning("shadow.not_stored", error=type(problem).__name__)
        over = (key for key, v in result.sessions.items() if v.state.closed or v.state.withdrawn)
        shadow.forget(over)
        if result.revised is not None:  # its vectors are of the turn as it was
            shadow.forget([result.revised.session_id])

    def _messages(self, result: BatchResult, batch: Sequence[Received] = ()) -> Iterator[Message]:
        """Scores and alerts; of a hidden session only that it cannot be read any more."""
        topics, origins = self._topics, TraceOrigins(batch, self._tracing.headers())
        hidden = self._hidden(result)
        for topic, outputs in (
            (topics.turn_scores, result.turn_scores),
            (topics.session_scores, result.session_scores),
            (topics.alerts, result.alerts),
        ):
            for output in outputs:
                if output.session_id not in hidden:
                    key, trace = output.session_id.encode(), origins.find(output)
                    kind = str(output.__struct_config__.tag)
                    yield Message(topic, key, scores.encode(output), kind, trace)
            for session_id in self._withdrawn_now(result):
                yield Message(topic, session_id.encode(), None)

    def _hidden(self, result: BatchResult) -> set[str]:
        if not self._hide_withdrawn:
            return set()
        return {key for key, versioned in result.sessions.items() if versioned.state.withdrawn}

    def _withdrawn_now(self, result: BatchResult) -> list[str]:
        """Hidden sessions whose consent this batch has withdrawn."""
        hidden = self._hidden(result)
        found = [record.session_id for record in result.consents if record.withdraws]
        return [key for key in dict.fromkeys(found) if key in hidden]

    def _positions(self, batch: list[Received]) -> list[LogPosition]:
        """The log positions after this batch: no event before them waits."""
        read_to: dict[tuple[str, int], int] = {}
        for received in batch:
            source = received.source
            place = source.topic, source.partition
            if received.position:
                read_to[place] = max(read_to.get(place, 0), received.position)
        return [
            LogPosition(self._group, *place, offset, self._stored.get(place) or None)
            for place, offset in read_to.items()
        ]

    def retrying(self, call: Callable[[], T]) -> T:
        """Retry while the database is unavailable, with back-off and jitter."""
        retrying = Retrying(
            retry=retry_if_exception_type(StoreUnavailable),
            wait=wait_random_exponential(multiplier=0.1, max=5.0),
            stop=stop_any(stop_after_delay(self._retry_for), stop_when_event_set(self._ending)),
            before_sleep=self._log_retry,
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

    def _log_retry(self, attempt: RetryCallState) -> None:
        self.metrics.retries.inc()
        log.warning(
            "store.unavailable",
            attempt=attempt.attempt_number,
            waited_s=attempt.seconds_since_start,
        )


def _sessions_of(batch: Iterable[Received]) -> list[str]:
    return sorted({key for received in batch if (key := received.session_id) is not None})


def _compared(received: Received, begun: Mapping[str, Origin], states: States) -> Received:
    """The event, or its error if it is a turn that contradicts its stored session.

    A refused turn leaves no state to a session that has begun and has none under this bundle.
    """
    turn = received.event
    if isinstance(turn, ContractError):
        lost = received.session_id in begun and received.session_id not in states
        return structs.replace(received, gap=False) if lost else received
    if not isinstance(turn, Turn) or turn.session_id not in begun:
        return received
    try:
        refuse_contradiction(turn, begun[turn.session_id])
    except ContractError as problem:
        return structs.replace(received, event=problem, gap=turn.session_id in states)
    return received
