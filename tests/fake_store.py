"""An in-memory store, for tests that need no database."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from stream_app.contracts.scores import SessionStatus
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.origin import Origin
from stream_app.core.session.past import NO_PAST, PastSession
from stream_app.core.session.ports import LogPosition, Message, OutboxEntry
from stream_app.core.session.session_state import SessionState, Versioned, pack, unpack
from stream_app.errors import DatabaseWentBack, StaleState, StoreUnavailable

Key = tuple[str, str]
"""Session and bundle."""


@dataclass
class Kept:
    """A stored state, as in a database row."""

    packed: bytes
    version: int
    partition: int
    status: SessionStatus
    seen_at: datetime | None

    def state(self) -> SessionState:
        return unpack(self.packed)

    def versioned(self) -> Versioned:
        return Versioned(self.state(), self.version, self.partition, seen_at=self.seen_at)


@dataclass
class FakeStore:
    """Implements ``core.ports.SessionStore``; ``second_connection`` shares its contents."""

    kept: dict[Key, Kept] = field(default_factory=dict)
    outbox: dict[int, list[Message]] = field(default_factory=dict)
    erased_ids: set[str] = field(default_factory=set)
    positions: dict[tuple[str, str, int], int] = field(default_factory=dict)
    away: bool = False

    def second_connection(self) -> "FakeStore":
        """The store of another worker with the same contents."""
        return FakeStore(self.kept, self.outbox, self.erased_ids, self.positions)

    def erase(self, session_id: str) -> None:
        """Erase a session, as ``store.erasure`` does."""
        self.erased_ids.add(session_id)
        for key in [key for key in self.kept if key[0] == session_id]:
            del self.kept[key]

    def load_states(self, session_ids: Sequence[str], bundle: str) -> dict[str, Versioned]:
        self.ping()
        return {
            session_id: found.versioned()
            for session_id in session_ids
            if (found := self.kept.get((session_id, bundle))) is not None
        }

    def find_erased(self, session_ids: Sequence[str]) -> set[str]:
        self.ping()
        return self.erased_ids.intersection(session_ids)

    def find_withdrawn(self, session_ids: Sequence[str]) -> dict[str, str | None]:
        self.ping()
        return {
            session_id: state.consent_version
            for (session_id, _), kept in self.kept.items()
            if session_id in session_ids and (state := kept.state()).withdrawn
        }

    def find_begun(self, session_ids: Sequence[str]) -> dict[str, Origin]:
        self.ping()
        return {
            session_id: Origin(state.team, state.domain, state.channel, state.started_at)
            for (session_id, _), kept in self.kept.items()
            if session_id in session_ids and (state := kept.state()).started_at is not None
        }

    def past_session(self, session_id: str) -> PastSession:
        self.ping()
        return NO_PAST

    def erasures_since(self, moment: datetime) -> bool:
        self.ping()
        return bool(self.erased_ids)

    def idle_sessions(
        self, bundle: str, before: datetime, partitions: Sequence[int] | None, limit: int = 200
    ) -> dict[str, Versioned]:
        return self._open(
            bundle,
            partitions,
            limit,
            lambda kept: _time(kept.seen_at, lambda at: at < before),
        )

    def due_sessions(
        self,
        bundle: str,
        due: datetime,
        active_since: datetime,
        partitions: Sequence[int],
        limit: int = 200,
    ) -> dict[str, Versioned]:
        def waiting(kept: Kept) -> datetime | None:
            live = all(
                _time(at, lambda at: at >= active_since)
                for at in (kept.seen_at, kept.state().last_activity_at)
            )
            return _time(kept.versioned().wakes_at, lambda at: at <= due) if live else None

        return self._open(bundle, partitions, limit, waiting)

    def commit(
        self,
        result: BatchResult,
        messages: Sequence[Message] = (),
        positions: Sequence[LogPosition] = (),
        published: Sequence[int] = (),
    ) -> int | None:
        self.check_positions(positions)
        new = self._checked(result)
        self.kept.update(new)
        for versioned in result.sessions.values():
            versioned.version += 1
        for at in positions:
            self.positions[at.consumer_group, at.topic, at.partition] = at.next_offset
        self.delete_outbox_entries(published)
        if not messages:
            return None
        entry = max(self.outbox, default=0) + 1
        self.outbox[entry] = list(messages)
        return entry

    def check_positions(self, positions: Sequence[LogPosition]) -> None:
        self.ping()
        for at in positions:
            kept = self.positions.get((at.consumer_group, at.topic, at.partition), 0)
            if at.stored is not None and kept < at.stored:
                raise DatabaseWentBack(at.stored - kept)

    def dry_run(self, result: BatchResult, messages: Sequence[Message] = ()) -> None:
        self._checked(result)

    def _checked(self, result: BatchResult) -> dict[Key, Kept]:
        self.ping()
        now = datetime.now(UTC)
        statuses = {score.session_id: score.status for score in result.session_scores}
        new: dict[Key, Kept] = {}
        stale = 0
        for session_id, versioned in result.sessions.items():
            key = session_id, versioned.state.bundle
            known = self.kept.get(key)
            versioned.seen_at = versioned.seen_at or now
            stale += versioned.version != (known.version if known else 0)
            new[key] = Kept(
                pack(versioned.state),
                versioned.version + 1,
                versioned.partition,
                statuses[session_id],
                versioned.seen_at,
            )
        if stale:
            raise StaleState(f"{stale} of {len(new)} sessions were updated by another worker")
        return new

    def outbox_ids(self, limit: int = 1000) -> list[int]:
        self.ping()
        return sorted(self.outbox)[:limit]

    def outbox_entries(self, outbox_ids: Sequence[int]) -> list[OutboxEntry]:
        self.ping()
        return [
            OutboxEntry(entry, self.outbox[entry])
            for entry in sorted(outbox_ids)
            if entry in self.outbox
        ]

    def delete_outbox_entries(self, outbox_ids: Sequence[int]) -> None:
        self.ping()
        for entry in outbox_ids:
            self.outbox.pop(entry, None)

    def ping(self) -> None:
        if self.away:
            raise StoreUnavailable("the store is unavailable")

    def _open(
        self,
        bundle: str,
        partitions: Sequence[int] | None,
        limit: int,
        since: Callable[[Kept], datetime | None],
    ) -> dict[str, Versioned]:
        """Open sessions for which ``since`` returns a time, the earliest first."""
        self.ping()

        def found() -> Iterator[tuple[datetime, str]]:
            for (session_id, own), kept in self.kept.items():
                here = partitions is None or kept.partition in partitions
                if own == bundle and here and kept.status is SessionStatus.OPEN:
                    at = since(kept)
                    if at is not None:
                        yield at, session_id

        return self.load_states([session_id for _, session_id in sorted(found())[:limit]], bundle)


def _time(at: datetime | None, fits: Callable[[datetime], bool]) -> datetime | None:
    return at if at is not None and fits(at) else None
