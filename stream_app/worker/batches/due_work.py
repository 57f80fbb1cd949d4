"""Changes sessions when it is time: flushes idle ones, fires due rules, forgets erased ones."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

import structlog

from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.ports import SessionStore
from stream_app.worker.batches.commits import Commits, Committed
from stream_app.worker.batches.poison import as_contract_error, may_be_poison
from stream_app.worker.batches.scoring import States
from stream_app.worker.batches.self_test import SelfTest
from stream_app.worker.batches.session_cache import SessionCache

log = structlog.get_logger(__name__)

CHECKED_PER_QUERY: Final = 1000
SESSIONS_PER_ROUND: Final = 200
"""Number of sessions that a timer loads at once."""


class DueWork:
    """Finds sessions whose time has come, and commits what is due; call it between batches."""

    def __init__(
        self,
        pipeline: Pipeline,
        store: SessionStore,
        cache: SessionCache,
        commits: Commits,
        self_test: SelfTest,
    ) -> None:
        self._pipeline = pipeline
        self._store = store
        self._cache = cache
        self._commits = commits
        self._self_test = self_test
        self._failing: set[str] = set()

    def flush_idle(self, before: datetime, partitions: Sequence[int]) -> Committed | None:
        """Flush and commit sessions last heard of before ``before``; None if there are none."""
        self._cache.clear_if_invalid()
        return self._commit_skipping_failures(
            lambda limit: self._store.idle_sessions(
                self._pipeline.bundle_id, before, partitions, limit
            ),
            self._pipeline.flush_idle,
        )

    def fire_due(
        self, due: datetime, active_since: datetime, partitions: Sequence[int]
    ) -> Committed | None:
        """Fire and commit the due time rules of silent sessions; None if there are none."""
        self._cache.clear_if_invalid()
        committed = self._commit_skipping_failures(
            lambda limit: self._store.due_sessions(
                self._pipeline.bundle_id, due, active_since, partitions, limit
            ),
            lambda states: self._fire_each(states, due),
        )
        if committed is not None:
            self._commits.stages.metrics.ticks.inc(len(committed.result.sessions))
        return committed

    def forget_erased(self, since: datetime) -> None:
        """Evict the states and keys of cached sessions that were erased since then."""
        if self._commits.retries.while_unavailable(lambda: self._store.erasures_since(since)):
            cached = self._cache.session_ids()
            for first in range(0, len(cached), CHECKED_PER_QUERY):
                some = cached[first : first + CHECKED_PER_QUERY]
                self._cache.discard(self._erased(some))
            if self._pipeline.shadow is not None:
                self._pipeline.shadow.forget_all()

    def _erased(self, session_ids: list[str]) -> set[str]:
        return self._commits.retries.while_unavailable(lambda: self._store.find_erased(session_ids))

    def _commit_skipping_failures(
        self, load: Callable[[int], States], work: Callable[[States], BatchResult]
    ) -> Committed | None:
        """Load sessions, do the work and commit it, excluding sessions for which it fails."""

        def find() -> States:
            return self._usable(load)

        if not find():
            return None
        try:
            return self._commits.commit(lambda: work(find()))
        except Exception as problem:
            if not may_be_poison(problem):
                raise
            self._self_test.run()
        for session_id, versioned in find().items():
            try:
                self._commits.dry_run(work({session_id: versioned}))
            except Exception as problem:
                if not may_be_poison(problem):
                    raise
                self._failing.add(session_id)
                log.error("session.failed", detail=as_contract_error(problem).detail)
        return self._commits.commit(lambda: work(find())) if find() else None

    def _usable(self, load: Callable[[int], States]) -> States:
        """Prefer cached states, and leave out sessions that failed earlier."""
        limit = SESSIONS_PER_ROUND + len(self._failing)
        found = self._commits.retries.while_unavailable(lambda: load(limit))
        return {
            key: self._cache.get(key) or versioned
            for key, versioned in found.items()
            if key not in self._failing
        }

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
