"""Removes what is older than it may be kept: text and session states first, then whole sessions.

Age counts from the time of storing, by the service's clock: events tell any time they like.

A state holds vectors of the last turns, which say something of their words: it goes with the text.
A session goes when it was last written too long ago, with all that belongs to it. One process does
it, once a day, in small pieces.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import sqlalchemy as sa

from stream_app.contracts.scores import SessionStatus
from stream_app.store import erasure, tables
from stream_app.store.repository import Store

EVERY: Final = timedelta(days=1)
ROWS_AT_A_TIME: Final = 2000
SESSIONS_AT_A_TIME: Final = 100
LAST_DONE: Final = "retention"
NEVER: Final = "0000"


def claim(store: Store, now: datetime) -> bool:
    """Whether it is this process's turn today; only one of several is told so."""
    table = tables.installation
    due, stamp = (now - EVERY).isoformat(), now.isoformat()
    with store.transaction() as connection:
        store.upsert(connection, table, [{"name": LAST_DONE, "value": NEVER}], keep=True)
        taken = connection.execute(
            sa.update(table)
            .where(table.c.name == LAST_DONE, table.c.value < due)
            .values(value=stamp)
        )
    return taken.rowcount == 1


def pieces(
    store: Store, text_before: datetime, sessions_before: datetime, now: datetime
) -> Iterator[Counter[str]]:
    """Remove piece by piece, each in a transaction of its own; what was removed, by its name."""
    _date(store, now)
    yield from _texts(store, text_before)
    yield from _states(store, text_before)
    yield from _sessions(store, sessions_before)


def oldest_text(store: Store) -> datetime | None:
    """When the oldest turn was stored whose text is still there."""
    table = tables.turns
    query = sa.select(table.c.stored_at).where(table.c.text.is_not(None))
    with store.reading() as connection:
        found: datetime | None = connection.scalar(query.order_by(table.c.stored_at).limit(1))
    return found


def _date(store: Store, now: datetime) -> None:
    """Date what an earlier release wrote during an upgrade; it is as old as this moment."""
    with store.transaction() as connection:
        for column in (tables.session_states.c.seen_at, tables.sessions.c.stored_at):
            undated = sa.update(column.table).where(column.is_(None))
            connection.execute(undated.values({column.name: now}))


def _texts(store: Store, before: datetime) -> Iterator[Counter[str]]:
    table = tables.turns
    old = (
        sa.select(table.c.session_id, table.c.seq)
        .where(table.c.text.is_not(None), table.c.stored_at < before)
        .order_by(table.c.stored_at)
        .limit(ROWS_AT_A_TIME)
    )
    here = sa.tuple_(table.c.session_id, table.c.seq)
    statement = sa.update(table).where(here.in_(old)).values(text=None)
    yield from _until_nothing(store, statement, "texts")


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
                    table.c.seen_at < before,
                )
                .limit(ROWS_AT_A_TIME)
            )
            statement = (
                sa.delete(table)
                .where(table.c.bundle == bundle, table.c.session_id.in_(old))
                .returning(table.c.session_id)
            )
            while gone := _with_windows(store, statement, bundle):
                yield Counter({table.name: gone})


def _sessions(store: Store, before: datetime) -> Iterator[Counter[str]]:
    table = tables.sessions
    query = (
        sa.select(table.c.session_id).where(table.c.stored_at < before).limit(SESSIONS_AT_A_TIME)
    )
    while True:
        with store.transaction() as connection:
            old = list(connection.scalars(query))
            removed = erasure.remove(connection, old) if old else Counter[str]()
        if not removed:
            return
        yield removed


def _with_windows(store: Store, statement: sa.Executable, bundle: str) -> int:
    """Delete states with the turns of their windows; how many states."""
    turns = tables.window_turns
    with store.transaction() as connection:
        gone = list(connection.scalars(statement))
        connection.execute(
            sa.delete(turns).where(turns.c.bundle == bundle, turns.c.session_id.in_(gone))
        )
    return len(gone)


def _until_nothing(store: Store, statement: sa.Update, name: str) -> Iterator[Counter[str]]:
    while True:
        with store.transaction() as connection:
            count = connection.execute(statement).rowcount
        if count <= 0:
            return
        yield Counter({name: count})
