"""Attributes of sessions that determine which clients receive their live events."""

from collections.abc import Sequence

import sqlalchemy as sa
from msgspec import Struct

from stream_app.contracts.events import Role
from stream_app.store.repository import Store
from stream_app.store.tables import session_assignments, session_speakers, sessions


class SessionRouting(Struct, frozen=True):
    """Attributes of one session.

    ``counsellors``: pseudonyms of those who have spoken so far. ``readers``: of those who may read
    the session: its first counsellor, and those it is assigned to.
    """

    team: str | None = None
    domain: str | None = None
    channel: str | None = None
    counsellors: list[str] = []
    readers: list[str] = []


def read_routing(store: Store, session_ids: Sequence[str]) -> dict[str, SessionRouting]:
    """Read the attributes of these sessions; unknown ones are left out."""
    session, speaker, assignment = sessions, session_speakers, session_assignments
    found = sa.select(
        session.c.session_id, session.c.team, session.c.domain, session.c.channel
    ).where(session.c.session_id.in_(session_ids))
    counsellors = (
        sa.select(speaker.c.session_id, speaker.c.speaker, speaker.c.reads)
        .where(speaker.c.session_id.in_(session_ids), speaker.c.role == Role.COUNSELLOR.value)
        .order_by(speaker.c.session_id, speaker.c.speaker)
    )
    assigned = sa.select(assignment.c.session_id, assignment.c.speaker).where(
        assignment.c.session_id.in_(session_ids)
    )
    with store.reading() as connection:
        spoken: dict[str, list[str]] = {}
        readers: dict[str, list[str]] = {}
        for session_id, name, reads in connection.execute(counsellors):
            spoken.setdefault(session_id, []).append(name)
            if reads:
                readers.setdefault(session_id, []).append(name)
        for session_id, name in connection.execute(assigned):
            readers.setdefault(session_id, []).append(name)
        return {
            row.session_id: SessionRouting(
                row.team,
                row.domain,
                row.channel,
                spoken.get(row.session_id, []),
                readers.get(row.session_id, []),
            )
            for row in connection.execute(found)
        }


def find_readable(store: Store, session_ids: Sequence[str]) -> set[str]:
    """Those of these sessions that are stored and not hidden."""
    query = sa.select(sessions.c.session_id).where(
        sessions.c.session_id.in_(session_ids), sessions.c.hidden.is_(False)
    )
    with store.reading() as connection:
        return set(connection.scalars(query))
