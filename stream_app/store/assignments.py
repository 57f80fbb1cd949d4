"""Sessions that a supervisor has assigned to a counsellor, who may then read them.

The first counsellor of a session may read it without an assignment (``core.session``). Later
counsellors' turns give no access: a program that sends events could otherwise name a reader.
"""

from datetime import UTC, datetime

import sqlalchemy as sa

from stream_app.store.repository import Store
from stream_app.store.tables import session_assignments


def assign(store: Store, session_id: str, speaker: str, person: str) -> None:
    """Let the counsellor with this pseudonym read the session; ``person`` assigns it."""
    row = {
        "session_id": session_id,
        "speaker": speaker,
        "person": person,
        "at": datetime.now(UTC),
    }
    with store.transaction() as connection:
        store.upsert(connection, session_assignments, [row], keep=True)


def withdraw(store: Store, session_id: str, speaker: str) -> None:
    """Delete an assignment; the first counsellor keeps access."""
    table = session_assignments
    here = (table.c.session_id == session_id, table.c.speaker == speaker)
    with store.transaction() as connection:
        connection.execute(sa.delete(table).where(*here))


def assigned(store: Store, session_id: str) -> list[str]:
    """Pseudonyms of the counsellors that the session is assigned to."""
    table = session_assignments
    query = sa.select(table.c.speaker).where(table.c.session_id == session_id)
    with store.reading() as connection:
        return list(connection.scalars(query.order_by(table.c.at, table.c.speaker)))
