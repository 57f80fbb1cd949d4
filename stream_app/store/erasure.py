"""Erases sessions: all of their rows, and unpublished messages.

The audit trail is kept: it records who read what, and contains no dialogue. A keyed digest of each
erased session's id is stored, so that a worker that re-reads the log, or has the session in memory,
does not store it again.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection

from stream_app.store import outbox as outbox_codec
from stream_app.store import tables
from stream_app.store.repository import Store

SESSIONS_PER_BATCH: Final = 200
SESSION_TABLES: Final = (
    tables.session_states,
    *(
        table
        for table in tables.metadata.sorted_tables
        if "session_id" in table.c and table not in (tables.session_states, tables.audit)
    ),
)
"""States first: this waits for concurrent commits, and makes later ones fail."""


class StoredCounts(Struct, frozen=True):
    """Numbers of stored sessions and turns that an erasure would remove."""

    sessions: int
    turns: int


def sessions_of(store: Store, speaker_id: str) -> list[str]:
    """Sessions in which a speaker took part; ``speaker_id`` as in the events."""
    table = tables.session_speakers
    query = (
        sa.select(table.c.session_id)
        .distinct()
        .where(table.c.speaker == store.privacy.pseudonym(speaker_id))
        .order_by(table.c.session_id)
    )
    with store.reading() as connection:
        return list(connection.scalars(query))


def count_stored(store: Store, session_ids: Sequence[str]) -> StoredCounts:
    """Number of stored sessions and turns among ``session_ids``."""
    sessions = turns = 0
    with store.reading() as connection:
        for some in _batches(session_ids):
            sessions += _count(connection, tables.sessions, some)
            turns += _count(connection, tables.turns, some)
    return StoredCounts(sessions, turns)


def erase(store: Store, session_ids: Sequence[str], now: datetime) -> Counter[str]:
    """Erase sessions permanently; return the number of deleted rows by table.

    Raises:
        StoreError: the database failed; already erased sessions stay erased.
    """
    removed: Counter[str] = Counter()
    for some in _batches(session_ids):
        marks = [{"digest": store.privacy.pseudonym(key), "at": now} for key in some]
        with store.transaction() as connection:
            store.upsert(connection, tables.erasures, marks, keep=True)
            removed += delete_sessions(connection, some)
    return removed


def delete_baselines(store: Store, speaker_id: str) -> Counter[str]:
    """Delete a counsellor's baselines; return the number of deleted rows by table."""
    table = tables.baselines
    with store.transaction() as connection:
        deleted = connection.execute(
            sa.delete(table).where(
                table.c.scope == "counsellor",
                table.c.key == store.privacy.pseudonym(speaker_id),
            )
        )
    return Counter({table.name: deleted.rowcount}) if deleted.rowcount else Counter()


def delete_sessions(connection: Connection, session_ids: Sequence[str]) -> Counter[str]:
    """Delete all rows of these sessions; return their number by table, without zeros."""
    removed: Counter[str] = Counter()
    alerts = sa.select(tables.alerts.c.alert_id).where(tables.alerts.c.session_id.in_(session_ids))
    for table in SESSION_TABLES:
        if table is tables.alerts:
            deliveries = tables.deliveries
            deleted = connection.execute(
                sa.delete(deliveries).where(deliveries.c.alert_id.in_(alerts))
            )
            removed[deliveries.name] += deleted.rowcount
        deleted = connection.execute(sa.delete(table).where(table.c.session_id.in_(session_ids)))
        removed[table.name] += deleted.rowcount
    removed[tables.outbox.name] += _delete_unpublished(
        connection, {key.encode() for key in session_ids}
    )
    return +removed


def _batches(session_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(session_ids), SESSIONS_PER_BATCH):
        yield session_ids[first : first + SESSIONS_PER_BATCH]


def _delete_unpublished(connection: Connection, keys: set[bytes]) -> int:
    """Remove unpublished messages with these keys from the outbox; return their number."""
    table, deleted = tables.outbox, 0
    for row in connection.execute(sa.select(table.c.id, table.c.messages)).all():
        messages = outbox_codec.unpack(row.messages)
        kept = [message for message in messages if message.key not in keys]
        if len(kept) == len(messages):
            continue
        deleted += len(messages) - len(kept)
        this_row = table.c.id == row.id
        if kept:
            packed = outbox_codec.pack(kept)
            connection.execute(sa.update(table).where(this_row).values(messages=packed))
        else:
            connection.execute(sa.delete(table).where(this_row))
    return deleted


def _count(connection: Connection, table: sa.Table, session_ids: Sequence[str]) -> int:
    query = sa.select(sa.func.count()).where(table.c.session_id.in_(session_ids))
    return int(connection.scalar(query.select_from(table)) or 0)
