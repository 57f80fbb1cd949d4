"""Erases sessions: every row that there is of them, and what would bring them back.

The audit trail stays: it says who read what, and holds nothing of what was said. So that a worker
which reads the log again, or has the session in memory, does not store it anew, an erased session
leaves a keyed digest of its id behind.
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

AT_A_TIME: Final = 200
OF_SESSIONS: Final = (
    tables.session_states,
    *(
        table
        for table in tables.metadata.sorted_tables
        if "session_id" in table.c and table not in (tables.session_states, tables.audit)
    ),
)
"""States come first: whoever is writing to a session is waited for, and writes no more after."""


class Extent(Struct, frozen=True):
    """What an erasure would remove: sessions that are known, and their turns."""

    sessions: int
    turns: int


def sessions_of(store: Store, speaker_id: str) -> list[str]:
    """Sessions in which a speaker took part; the id as events carry it."""
    table = tables.session_speakers
    query = (
        sa.select(table.c.session_id)
        .distinct()
        .where(table.c.speaker == store.privacy.pseudonym(speaker_id))
        .order_by(table.c.session_id)
    )
    with store.reading() as connection:
        return list(connection.scalars(query))


def extent(store: Store, session_ids: Sequence[str]) -> Extent:
    """How much there is of these sessions."""
    sessions = turns = 0
    with store.reading() as connection:
        for some in _pieces(session_ids):
            sessions += _count(connection, tables.sessions, some)
            turns += _count(connection, tables.turns, some)
    return Extent(sessions, turns)


def erase(store: Store, session_ids: Sequence[str], now: datetime) -> Counter[str]:
    """Remove the sessions for good; rows removed by table.

    Raises:
        StoreError: the database refused; sessions that were done before stay removed.
    """
    removed: Counter[str] = Counter()
    for some in _pieces(session_ids):
        marks = [{"digest": store.privacy.pseudonym(key), "at": now} for key in some]
        with store.transaction() as connection:
            store.upsert(connection, tables.erasures, marks, keep=True)
            removed += remove(connection, some)
    return removed


def forget_speaker(store: Store, speaker_id: str) -> Counter[str]:
    """Remove what is usual for a counsellor; rows removed by table."""
    table = tables.baselines
    with store.transaction() as connection:
        gone = connection.execute(
            sa.delete(table).where(
                table.c.scope == "counsellor",
                table.c.key == store.privacy.pseudonym(speaker_id),
            )
        )
    return Counter({table.name: gone.rowcount}) if gone.rowcount else Counter()


def remove(connection: Connection, session_ids: Sequence[str]) -> Counter[str]:
    """Delete all rows of some sessions; rows by table, those without any left out."""
    removed: Counter[str] = Counter()
    alerts = sa.select(tables.alerts.c.alert_id).where(tables.alerts.c.session_id.in_(session_ids))
    for table in OF_SESSIONS:
        if table is tables.alerts:
            told = tables.deliveries
            gone = connection.execute(sa.delete(told).where(told.c.alert_id.in_(alerts)))
            removed[told.name] += gone.rowcount
        gone = connection.execute(sa.delete(table).where(table.c.session_id.in_(session_ids)))
        removed[table.name] += gone.rowcount
    removed[tables.outbox.name] += _take_back(connection, {key.encode() for key in session_ids})
    return +removed


def _pieces(session_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(session_ids), AT_A_TIME):
        yield session_ids[first : first + AT_A_TIME]


def _take_back(connection: Connection, keys: set[bytes]) -> int:
    """Messages of some sessions that are not out yet."""
    table, taken = tables.outbox, 0
    for row in connection.execute(sa.select(table.c.id, table.c.messages)).all():
        messages = outbox_codec.unpack(row.messages)
        left = [message for message in messages if message.key not in keys]
        if len(left) == len(messages):
            continue
        taken += len(messages) - len(left)
        mine = table.c.id == row.id
        if left:
            packed = outbox_codec.pack(left)
            connection.execute(sa.update(table).where(mine).values(messages=packed))
        else:
            connection.execute(sa.delete(table).where(mine))
    return taken


def _count(connection: Connection, table: sa.Table, session_ids: Sequence[str]) -> int:
    query = sa.select(sa.func.count()).where(table.c.session_id.in_(session_ids))
    return int(connection.scalar(query.select_from(table)) or 0)
