"""Purges expired data: text and session states first, later whole sessions.

Age is measured from the time of storing, by the database's clock (``store.clocks``), because
producers may send any time in events, and the clock of a worker's machine may be wrong. If clocks
disagree, nothing is purged. A wrong clock of the database, too, would let much expire at once:
``Schedule.check`` refuses what the daily purges, or shorter retention times, do not explain.

A state contains vectors and masked tokens of the last turns, so it expires with the text. A session
expires a set time after its last write, with all of its rows. A session on legal hold does not
expire. Coaching goals expire with the sessions of their last day, idempotency
keys of programs after a day. One process purges once a day, in small transactions.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.contracts.scores import SessionStatus
from stream_app.errors import RapportError
from stream_app.store.database import clocks, session_locks, tables
from stream_app.store.database.periods import seen_period
from stream_app.store.lifecycle import erasure
from stream_app.store.lifecycle.holds import not_held
from stream_app.store.stream import claims
from stream_app.store.stream.claims import claim
from stream_app.store.stream.ingest_keys import KEEP_FOR
from stream_app.store.stream.repository import Store

INTERVAL: Final = timedelta(days=1)
ROWS_PER_BATCH: Final = 2000
SESSIONS_PER_BATCH: Final = 100
LAST_RUN: Final = "retention"
PAUSE: Final = timedelta(days=3)
"""Time without a purge that needs no explanation."""
SHARE: Final = 0.25
"""Share of the stored texts or sessions that may expire at once without an explanation."""


class PurgeRefused(RapportError):
    """More rows would expire at once than the retention times explain."""


@dataclass(frozen=True, slots=True)
class Expiring:
    """Rows of one kind: all, those that expire now, and those of them that nothing explains."""

    what: str
    stored: int
    expiring: int
    unexplained: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """A purge: ``now`` by the database's clock, the retention times, and when the last one ran."""

    now: datetime
    texts: timedelta
    sessions: timedelta
    last: datetime | None

    @property
    def text_before(self) -> datetime:
        """Text that was stored before has expired."""
        return self.now - self.texts

    @property
    def sessions_before(self) -> datetime:
        """Sessions that were last stored before have expired."""
        return self.now - self.sessions

    def expiring(self, store: Store) -> list[Expiring]:
        """Return the numbers of rows that the purge would delete."""
        turns, sessions, moved = tables.turns, tables.sessions, tables.archived_sessions
        kinds = (
            ("texts", turns, turns.c.text.is_not(None), self.texts),
            ("sessions", sessions, sa.true(), self.sessions),
            ("archived sessions", moved, sa.true(), self.sessions),
        )
        with store.reading() as connection:
            return [self._expiring(connection, *kind) for kind in kinds]

    def check(self, store: Store) -> None:
        """Check that the time since the last purge explains what expires.

        Rows that had expired at the last purge are always explained: then it was interrupted, or
        the retention times are shorter now.

        Raises:
            PurgeRefused: more than ``SHARE`` of the rows would expire without an explanation.
        """
        for kind in self.expiring(store):
            if kind.unexplained > SHARE * kind.stored:
                since = (
                    f"the last purge was {self.last:%Y-%m-%d %H:%M} UTC"
                    if self.last
                    else ("no purge has run yet")
                )
                raise PurgeRefused(
                    f"NOTHING IS PURGED: {kind.expiring} of {kind.stored} {kind.what} would expire "
                    f"at once, and the retention times do not explain {kind.unexplained} of them "
                    f"({since}, the database's clock says {self.now:%Y-%m-%d %H:%M} UTC). If that "
                    "clock is wrong, correct it; if it is right, run `rapport db purge`"
                )

    def _expiring(
        self,
        connection: Connection,
        what: str,
        table: sa.Table,
        counted: sa.ColumnElement[bool],
        kept: timedelta,
    ) -> Expiring:
        stored_at = table.c.stored_at
        old = stored_at < self.now - kept
        explained = sa.false() if self.last is None else stored_at < self.last + PAUSE - kept
        free = not_held(table.c.session_id)
        query = sa.select(
            sa.func.count(),
            sa.func.count().filter(old, free),
            sa.func.count().filter(old, free, sa.not_(explained)),
        ).where(counted)
        return Expiring(what, *connection.execute(query.select_from(table)).one())


def due(
    store: Store,
    texts: timedelta,
    sessions: timedelta,
    machine: datetime,
    broker: tuple[datetime, datetime] | None = None,
) -> Schedule | None:
    """Today's purge; None if it has run.

    ``machine``, ``broker``: the clocks of this machine and of the broker (``clocks.check``).

    Raises:
        ClocksDisagree: nobody knows what has expired.
    """
    planned = schedule(store, texts, sessions)
    last = claims.NEVER if planned.last is None else planned.last.isoformat()
    if not claims.is_due(last, INTERVAL, planned.now):
        return None
    clocks.check(planned.now, machine, broker)
    return planned


def schedule(store: Store, texts: timedelta, sessions: timedelta) -> Schedule:
    """A purge at the present."""
    with store.reading() as connection:
        now, last = clocks.database_now(connection), claims.last(connection, LAST_RUN)
    store.clock.note(now)
    claimed = None if last == claims.NEVER else datetime.fromisoformat(last).astimezone(UTC)
    if claimed is not None and claimed > now + clocks.TOLERANCE:
        claimed = None  # by a process whose clock was wrong: unknown when it was
    return Schedule(now, texts, sessions, claimed)


def claim_daily_run(store: Store, now: datetime) -> bool:
    """Claim today's purge; returns True in exactly one process."""
    return claim(store, LAST_RUN, INTERVAL, now)


def purge(
    store: Store, text_before: datetime, sessions_before: datetime, now: datetime
) -> Iterator[Counter[str]]:
    """Delete expired data in batches, each in its own transaction; yields rows deleted by table."""
    _fill_missing_times(store, now)
    yield from _texts(store, text_before)
    yield from _states(store, text_before)
    yield from _sessions(store, sessions_before)
    yield from _goals(store, sessions_before)
    yield from _ingested(store, sessions_before, now)


def oldest_text_stored_at(store: Store) -> datetime | None:
    """When the oldest turn that still has its text was stored; None without any."""
    return _text_stored_at(store, sa.func.min(tables.turns.c.stored_at))


def newest_text_stored_at(store: Store) -> datetime | None:
    """When the newest turn that still has its text was stored; None without any."""
    return _text_stored_at(store, sa.func.max(tables.turns.c.stored_at))


def _text_stored_at(store: Store, which: sa.ColumnElement[datetime]) -> datetime | None:
    with store.reading() as connection:
        found: datetime | None = connection.scalar(
            sa.select(which).where(tables.turns.c.text.is_not(None))
        )
    return found


def _fill_missing_times(store: Store, now: datetime) -> None:
    """Set missing times of rows that an earlier release wrote during an upgrade to ``now``."""
    states, sessions = tables.session_states, tables.sessions
    with store.transaction() as connection:
        for table, column, values in (
            (states, states.c.seen_at, {"seen_at": now, "seen_period": seen_period(now)}),
            (sessions, sessions.c.stored_at, {"stored_at": now}),
        ):
            connection.execute(sa.update(table).where(column.is_(None)).values(values))


def _texts(store: Store, before: datetime) -> Iterator[Counter[str]]:
    table = tables.turns
    old = (
        sa.select(table.c.session_id, table.c.seq)
        .where(table.c.text.is_not(None), table.c.stored_at < before, not_held(table.c.session_id))
        .order_by(table.c.stored_at)
        .limit(ROWS_PER_BATCH)
    )
    key = sa.tuple_(table.c.session_id, table.c.seq)
    statement = sa.update(table).where(key.in_(old)).values(text=None)
    yield from _repeat(store, statement, "texts")


def _states(store: Store, before: datetime) -> Iterator[Counter[str]]:
    table = tables.session_states
    with store.reading() as connection:
        known = list(connection.scalars(sa.select(tables.bundles.c.bundle)))
    for bundle in known:
        for status in SessionStatus:
            old = (
                sa.select(table.c.session_id)
                .where(
                    table.c.bundle == bundle,
                    table.c.status == status.value,
                    table.c.seen_period <= seen_period(before),
                    table.c.seen_at < before,
                    not_held(table.c.session_id),
                )
                .limit(ROWS_PER_BATCH)
            )
            statement = (
                sa.delete(table)
                .where(table.c.bundle == bundle, table.c.session_id.in_(old))
                .returning(table.c.session_id)
            )
            while deleted := _delete_states(store, statement, bundle):
                yield Counter({table.name: deleted})


def _sessions(store: Store, before: datetime) -> Iterator[Counter[str]]:
    table = tables.sessions
    query = sa.select(table.c.session_id).where(
        table.c.stored_at < before, not_held(table.c.session_id)
    )
    while True:
        with store.transaction() as connection:
            found = list(connection.scalars(query.limit(SESSIONS_PER_BATCH)))
            session_locks.lock(connection, found)
            # without those that were written, or put on hold, before they were locked
            old = list(connection.scalars(query.where(table.c.session_id.in_(found))))
            removed = erasure.delete_sessions(connection, old) if old else Counter[str]()
        if not removed:
            return
        yield removed


def _goals(store: Store, before: datetime) -> Iterator[Counter[str]]:
    """Coaching goals expire as sessions do, counted from the day on which they end."""
    with store.transaction() as connection:
        ended = tables.coaching_goals.c.ends_on < before.date()
        removed = +erasure.delete_goals(connection, ended)
    if removed:
        yield removed


def _ingested(store: Store, before: datetime, now: datetime) -> Iterator[Counter[str]]:
    """Expired idempotency keys, and numbers of sessions of which no turn was ever stored."""
    keys, numbers = tables.ingest_keys, tables.session_numbers
    stored = sa.select(tables.sessions.c.session_id)
    unused = (
        numbers.c.at < before,
        numbers.c.session_id.not_in(stored),
        not_held(numbers.c.session_id),
    )
    for table, old in ((keys, (keys.c.at < now - KEEP_FOR,)), (numbers, unused)):
        [key] = table.primary_key.columns
        some = sa.select(key).where(*old).limit(ROWS_PER_BATCH)
        yield from _repeat(store, sa.delete(table).where(key.in_(some)), table.name)


def _delete_states(store: Store, statement: sa.Executable, bundle: str) -> int:
    """Delete states and the turns of their windows; return the number of states."""
    turns = tables.window_turns
    with store.transaction() as connection:
        deleted = list(connection.scalars(statement))
        connection.execute(
            sa.delete(turns).where(turns.c.bundle == bundle, turns.c.session_id.in_(deleted))
        )
    return len(deleted)


def _repeat(store: Store, statement: sa.Update | sa.Delete, name: str) -> Iterator[Counter[str]]:
    while True:
        with store.transaction() as connection:
            count = connection.execute(statement).rowcount
        if count <= 0:
            return
        yield Counter({name: count})
