"""Commits results with their messages, which stay in the outbox until they are published."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from stream_app.core.pipeline.pipeline import Received
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.ports import LogPosition, Message, SessionStore
from stream_app.worker.batches.after_commit import AfterCommit
from stream_app.worker.batches.metrics import Stages
from stream_app.worker.batches.outgoing import Outgoing
from stream_app.worker.batches.retries import Retries
from stream_app.worker.batches.session_cache import SessionCache

STALE_ATTEMPTS: Final = 6
"""Attempts to commit a batch whose sessions another worker keeps advancing, before it is split."""


class Committed(Struct, frozen=True):
    """A committed batch with the messages to publish."""

    result: BatchResult
    messages: list[Message]
    outbox_id: int | None


class Outbox:
    """Messages that are committed and not known to be published."""

    def __init__(
        self, store: SessionStore, retries: Retries, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.published: list[int] = []
        """Rows that the next commit deletes."""
        self._store = store
        self._retries = retries
        self._clock = clock
        self._first_seen: dict[int, float] = {}

    def abandoned(self, after: float) -> list[Committed]:
        """Batches that another worker has committed and not published for ``after`` seconds.

        The time is measured with this worker's monotonic clock, from when it first saw them,
        because wall clocks differ between machines and jump.
        """
        now = self._clock()
        waiting = self._retries.while_unavailable(self._store.outbox_ids)
        self._first_seen = {key: self._first_seen.get(key, now) for key in waiting}
        old = [key for key, since in self._first_seen.items() if now - since >= after]
        return self.stored(old[:100]) if old else []

    def stored(self, outbox_ids: Sequence[int]) -> list[Committed]:
        """The messages of these outbox rows, to be published."""
        entries = self._retries.while_unavailable(lambda: self._store.outbox_entries(outbox_ids))
        return [Committed(BatchResult(), entry.messages, entry.id) for entry in entries]

    def mark_published(self, committed: Committed) -> None:
        """Delete the row of a batch whose messages are published."""
        self.mark_published_later(committed)
        if self.published:
            self._retries.while_unavailable(
                lambda: self._store.delete_outbox_entries(self.published)
            )
            self.published.clear()

    def mark_published_later(self, committed: Committed) -> None:
        """Delete its row with the next commit, which saves a transaction.

        If the worker dies before, its messages are published again, as after any crash between the
        commit and the deletion.
        """
        if committed.outbox_id is not None:
            self.published.append(committed.outbox_id)


class Commits:
    """Commits to the store, then to the cache; repeats the work if a state was stale."""

    def __init__(
        self,
        store: SessionStore,
        outgoing: Outgoing,
        outbox: Outbox,
        cache: SessionCache,
        retries: Retries,
        stages: Stages,
        after: AfterCommit,
    ) -> None:
        self._store = store
        self._outgoing = outgoing
        self._outbox = outbox
        self._cache = cache
        self.retries = retries
        self.stages = stages
        self._after = after

    def commit(
        self,
        work: Callable[[], BatchResult],
        positions: Sequence[LogPosition] = (),
        batch: Sequence[Received] = (),
    ) -> Committed:
        """Do the work and commit it; repeat it from the database if a state was stale.

        The other worker made progress meanwhile, so workers of one session take turns. A single
        event cannot be split into shorter parts, which would meet fewer other commits: it is
        repeated for the retry time.
        """
        attempts = None if len(batch) == 1 else STALE_ATTEMPTS
        try:
            return self.retries.while_stale(
                lambda: self._commit(work(), positions, batch), self._cache.clear, attempts
            )
        except BaseException:
            self._cache.clear()
            raise

    def dry_run(self, result: BatchResult) -> None:
        """Commit a result and roll it back; does not retry."""
        self._store.dry_run(result, self._outgoing.messages(result))

    def _commit(
        self, result: BatchResult, positions: Sequence[LogPosition], batch: Sequence[Received]
    ) -> Committed:
        messages = self._outgoing.messages(result, batch)
        with self.stages.stage("commit", batch):
            outbox_id = self.retries.while_unavailable(
                lambda: self._store.commit(result, messages, positions, self._outbox.published)
            )
            self._outbox.published.clear()
        self._cache.put(result.sessions)
        self.stages.metrics.cached_sessions.set(len(self._cache))
        self._after.follow(result)
        return Committed(result, messages, outbox_id)
