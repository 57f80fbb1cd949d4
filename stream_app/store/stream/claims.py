"""Recurring tasks that one process of several performs."""

from datetime import datetime, timedelta
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.store.database import tables
from stream_app.store.database.clocks import TOLERANCE
from stream_app.store.stream.repository import Store

NEVER: Final = "0000"


def last(connection: Connection, task: str) -> str:
    """When the task was last claimed, in ISO 8601; ``NEVER`` if it was not."""
    column = tables.installation.c
    found = connection.scalar(sa.select(column.value).where(column.name == task))
    return NEVER if found is None else str(found)


def is_due(stamp: str, interval: timedelta, now: datetime) -> bool:
    """Whether a task that was claimed then is due again.

    A claim from the future was made by a process whose clock was wrong, and does not count.
    """
    return stamp < (now - interval).isoformat() or stamp > (now + TOLERANCE).isoformat()


def claim(store: Store, task: str, interval: timedelta, now: datetime) -> bool:
    """Claim the next run of a task; returns True in exactly one process per interval."""
    table = tables.installation
    with store.transaction() as connection:
        store.upsert(connection, table, [{"name": task, "value": NEVER}], keep=True)
        stamp = last(connection, task)
        if not is_due(stamp, interval, now):
            return False
        taken = connection.execute(
            sa.update(table)
            .where(table.c.name == task, table.c.value == stamp)
            .values(value=now.isoformat())
        )
    return taken.rowcount == 1
