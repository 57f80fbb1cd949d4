"""Sessions that a supervisor has assigned to a counsellor, who may then read them.

The first counsellor of a session may read it without an assignment (``core.session``). Later
counsellors' turns give no access: a program that sends events could otherwise name a reader.

A session without consent cannot be assigned: there is nothing to read, and no row of it may hold a
person.
"""

from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.store.accounts.roles import PersonRole
from stream_app.store.database.tables import people, session_assignments, sessions, turns
from stream_app.store.sessions.scored_turns import StateConflict
from stream_app.store.stream.repository import Store

_COUNSELLORS: Final = (
    sa.select(
        people.c.name,
        sa.exists().where(
            session_assignments.c.session_id == sa.bindparam("session_id"),
            session_assignments.c.speaker == people.c.speaker,
        ),
    )
    .where(
        people.c.role == PersonRole.COUNSELLOR.value,
        people.c.disabled_at.is_(None),
        people.c.speaker.is_not(None),
        people.c.speaker != "",
    )
    .order_by(people.c.name)
)
_OF_TEAM: Final = _COUNSELLORS.where(
    people.c.team.is_(None) | (people.c.team == sa.bindparam("team"))
)


def is_assignable(store: Store, session_id: str) -> bool:
    """Whether the session may be analysed: by consent, or where none is required."""
    with store.reading() as connection:
        return may_be_analysed(connection, session_id)


def assign(store: Store, session_id: str, speaker: str, person: str) -> None:
    """Let the counsellor with this pseudonym read the session; ``person`` assigns it.

    Raises:
        StateConflict: consent was not given, or was withdrawn.
    """
    row = {
        "session_id": session_id,
        "speaker": speaker,
        "person": person,
        "at": datetime.now(UTC),
    }
    with store.transaction() as connection:
        if not may_be_analysed(connection, session_id, lock=True):
            raise StateConflict(
                "consent was not given or was withdrawn: this session cannot be assigned"
            )
        store.upsert(connection, session_assignments, [row], keep=True)


def withdraw(store: Store, session_id: str, speaker: str) -> None:
    """Delete an assignment; the first counsellor keeps access."""
    table = session_assignments
    here = (table.c.session_id == session_id, table.c.speaker == speaker)
    with store.transaction() as connection:
        connection.execute(sa.delete(table).where(*here))


def counsellors(store: Store, session_id: str, team: str | None) -> dict[str, bool]:
    """Counsellors' accounts by name, and whether the session is assigned to them.

    Those of this team and of none; None: of all teams.
    """
    query = _COUNSELLORS if team is None else _OF_TEAM
    given = {"session_id": session_id} | ({} if team is None else {"team": team})
    with store.reading() as connection:
        return {name: bool(assigned) for name, assigned in connection.execute(query, given)}


def may_be_analysed(connection: Connection, session_id: str, *, lock: bool = False) -> bool:
    """Whether rows of the session may name people; ``lock``: until the transaction ends.

    Without required consent, a session is analysed whose consent is unknown; it has turns.
    """
    analysed = sa.exists().where(turns.c.session_id == session_id)
    query = sa.select(sessions.c.session_id).where(
        sessions.c.session_id == session_id,
        ~sessions.c.withdrawn,
        sessions.c.consent | (sessions.c.consent.is_(None) & analysed),
    )
    return connection.scalar(query.with_for_update() if lock else query) is not None
