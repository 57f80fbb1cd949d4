"""Advances the group's stored offsets in a batch's transaction, and detects an older database.

A worker knows which offset the database contains. If it contains less, an older one has taken its
place: a restored backup, or a replica that lagged at a failover. The batch is then refused, because
its events would hide the missing ones.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import cache

import sqlalchemy as sa
from msgspec import structs
from sqlalchemy import Connection

from stream_app.core.session.ports import LogPosition
from stream_app.errors import DatabaseWentBack
from stream_app.store.database import tables
from stream_app.store.database.connection import Database
from stream_app.store.database.rows import Row
from stream_app.store.database.statements import Statement, compiled


class StoredPositions:
    """The table of log positions; part of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._advance = _conditional_update(database.engine.dialect.name)

    def advance(
        self, connection: Connection, positions: Sequence[LogPosition], now: datetime
    ) -> None:
        """Write the positions after a batch.

        Raises:
            DatabaseWentBack: the database contains less than a position's ``stored``.
        """
        known = [at for at in positions if at.stored is not None]
        if known:
            rows = [{**_row(at, now), "stored": at.stored} for at in known]
            if self._advance.run(connection, rows) != len(known):
                raise DatabaseWentBack(max(1, _missing(connection, known)))
        new = [_row(at, now) for at in positions if at.stored is None]
        self._database.upsert(connection, tables.log_positions, new, keep=False)

    def check(self, connection: Connection, positions: Sequence[LogPosition]) -> None:
        """Compare the database with the positions' ``stored``.

        Raises:
            DatabaseWentBack: it contains less.
        """
        if missing := _missing(connection, positions):
            raise DatabaseWentBack(missing)


@cache
def _conditional_update(dialect: str) -> Statement:
    """Update where nothing is missing; a late worker does not move the position back."""
    table = tables.log_positions
    keys = ("consumer_group", "topic", "partition")
    known: sa.BindParameter[int] = sa.bindparam("b_stored")
    new: sa.BindParameter[int] = sa.bindparam("b_next_offset")
    further = sa.case(
        (table.c.next_offset == known, new),  # also back, in a recreated topic
        (table.c.next_offset > new, table.c.next_offset),
        else_=new,
    )
    update = (
        sa.update(table)
        .where(
            *(table.c[key] == sa.bindparam(f"b_{key}") for key in keys),
            table.c.next_offset >= known,
        )
        .values(next_offset=further, at=sa.bindparam("b_at"))
    )
    return compiled(update, table, dialect, prefix="b_")


def _row(at: LogPosition, now: datetime) -> Row:
    row = structs.asdict(at) | {"at": now}
    del row["stored"]
    return row


def _missing(connection: Connection, positions: Sequence[LogPosition]) -> int:
    """Number of events that the database lacks."""
    table = tables.log_positions
    missing = 0
    for at in positions:
        query = sa.select(table.c.next_offset).where(
            table.c.consumer_group == at.consumer_group,
            table.c.topic == at.topic,
            table.c.partition == at.partition,
        )
        missing += max(0, (at.stored or 0) - (connection.scalar(query) or 0))
    return missing
