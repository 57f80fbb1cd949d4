"""Which supervisors have a session's page open, shared by all web processes.

A page reports itself every ``REPORT_EVERY``; a report is valid for ``VALID_FOR`` and is deleted by
a later one. It is no record of reads: the audit trail is.
"""

from datetime import datetime, timedelta
from typing import Final

import sqlalchemy as sa

from stream_app.store.database.tables import UtcDateTime, presence
from stream_app.store.stream.repository import Store

REPORT_EVERY: Final = timedelta(seconds=15)
VALID_FOR: Final = 3 * REPORT_EVERY


_VALID_FROM: Final = sa.bindparam("valid_from", type_=UtcDateTime())
_EXPIRED: Final = sa.delete(presence).where(presence.c.seen_at < _VALID_FROM)
_SEEN: Final = (
    sa.select(presence.c.person, (presence.c.seen_at < _VALID_FROM).label("expired"))
    .where(
        (presence.c.session_id == sa.bindparam("session_id"))
        & (presence.c.person != sa.bindparam("person"))
        | (presence.c.seen_at < _VALID_FROM)
    )
    .order_by(presence.c.person)
)
"""Selects the others who look at the session, and all expired reports."""


def report(store: Store, session_id: str, person: str, now: datetime) -> list[str]:
    """Store that the person looks at the session; return who else does, by name."""
    row = {"session_id": session_id, "person": person, "seen_at": now}
    given = {"session_id": session_id, "person": person, "valid_from": now - VALID_FOR}
    with store.reading() as connection:
        found = connection.execute(_SEEN, given).all()
    with store.single_statement() as connection:
        store.upsert(connection, presence, [row], keep=False)
    if any(expired for _, expired in found):
        with store.single_statement() as connection:
            connection.execute(_EXPIRED, {"valid_from": given["valid_from"]})
    return [name for name, expired in found if not expired]


def leave(store: Store, session_id: str, person: str) -> None:
    """Store that the person has closed the page."""
    which = (presence.c.session_id == session_id) & (presence.c.person == person)
    with store.transaction() as connection:
        connection.execute(sa.delete(presence).where(which))
