"""Which supervisors have a session's page open, shared by all web processes.

A page reports itself every ``REPORT_EVERY``; a report is valid for ``VALID_FOR`` and is deleted by
a later one. It is no record of reads: the audit trail is.
"""

from datetime import datetime, timedelta
from typing import Final

import sqlalchemy as sa

from stream_app.store.repository import Store
from stream_app.store.tables import presence

REPORT_EVERY: Final = timedelta(seconds=15)
VALID_FOR: Final = 3 * REPORT_EVERY


def report(store: Store, session_id: str, person: str, now: datetime) -> list[str]:
    """Store that the person looks at the session; return who else does, by name."""
    row = {"session_id": session_id, "person": person, "seen_at": now}
    with store.transaction() as connection:
        connection.execute(sa.delete(presence).where(presence.c.seen_at < now - VALID_FOR))
        store.upsert(connection, presence, [row], keep=False)
        return _others(connection, session_id, person, now)


def leave(store: Store, session_id: str, person: str) -> None:
    """Store that the person has closed the page."""
    which = (presence.c.session_id == session_id) & (presence.c.person == person)
    with store.transaction() as connection:
        connection.execute(sa.delete(presence).where(which))


def _others(connection: sa.Connection, session_id: str, person: str, now: datetime) -> list[str]:
    query = (
        sa.select(presence.c.person)
        .where(
            presence.c.session_id == session_id,
            presence.c.person != person,
            presence.c.seen_at >= now - VALID_FOR,
        )
        .order_by(presence.c.person)
    )
    return list(connection.scalars(query))
