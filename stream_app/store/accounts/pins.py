"""Sessions that a person keeps at the top of the live wall."""

from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from stream_app.store.database.tables import pins
from stream_app.store.stream.repository import Store

MOST: Final = 100
"""Most pins of a person; the oldest give way."""
_OF_PERSON: Final = sa.select(pins.c.session_id).where(pins.c.person == sa.bindparam("of"))


def find(store: Store, person: str) -> frozenset[str]:
    """Ids of the sessions that this person has pinned."""
    with store.reading() as connection:
        return frozenset(connection.scalars(_OF_PERSON, {"of": person}))


def pin(store: Store, person: str, session_id: str) -> None:
    """Pin a session."""
    row = {"person": person, "session_id": session_id, "at": datetime.now(UTC)}
    mine = pins.c.person == person
    kept = sa.select(pins.c.session_id).where(mine).order_by(pins.c.at.desc()).limit(MOST)
    with store.transaction() as connection:
        store.upsert(connection, pins, [row], keep=True)
        newest = list(connection.scalars(kept))
        connection.execute(sa.delete(pins).where(mine, pins.c.session_id.not_in(newest)))


def unpin(store: Store, person: str, session_id: str) -> None:
    """Remove a pin, if there is one."""
    which = (pins.c.person == person) & (pins.c.session_id == session_id)
    with store.transaction() as connection:
        connection.execute(sa.delete(pins).where(which))
