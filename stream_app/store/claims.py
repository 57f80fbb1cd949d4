"""Recurring tasks that one process of several performs."""

from datetime import datetime, timedelta
from typing import Final

import sqlalchemy as sa

from stream_app.store import tables
from stream_app.store.repository import Store

NEVER: Final = "0000"


def claim(store: Store, task: str, interval: timedelta, now: datetime) -> bool:
    """Claim the next run of a task; returns True in exactly one process per interval."""
    table = tables.installation
    due, stamp = (now - interval).isoformat(), now.isoformat()
    with store.transaction() as connection:
        store.upsert(connection, table, [{"name": task, "value": NEVER}], keep=True)
        taken = connection.execute(
            sa.update(table).where(table.c.name == task, table.c.value < due).values(value=stamp)
        )
    return taken.rowcount == 1
