"""Purges expired data: text and session states first, later whole sessions.

Age is measured from the time of storing, by the service's clock, because producers may send any
time in events.

A state contains vectors of the last turns, which reveal something about their text, so it expires
with the text. A session expires a set time after its last write, with all of its rows. A session on
legal hold does not expire. Coaching goals expire with the sessions of their last day, idempotency
keys of programs after a day. One process purges once a day, in small transactions.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import sqlalchemy as sa

from stream_app.contracts.scores import SessionStatus
from stream_app.store import erasure, session_locks, tables
from stream_app.store.claims import claim
from stream_app.store.holds import not_held
from stream_app.store.ingest_keys import KEEP_FOR
from stream_app.store.periods import seen_period
from stream_app.store.repository import Store

INTERVAL: Final = timedelta(days=1)
ROWS_PER_BATCH: Final = 2000
SESSIONS_PER_BATCH: Final = 100
LAST_RUN: Final = "retention"


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
    table = tables.turns
    query = sa.select(table.c.stored_at).where(table.c.text.is_not(None))
    with store.reading() as connection:
        found: datetime | None = connection.scalar(query.order_by(table.c.stored_at).limit(1))
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
