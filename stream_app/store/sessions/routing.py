"""Attributes of sessions that determine which clients receive their live events."""

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa
from msgspec import Struct

from stream_app.contracts.events import Role
from stream_app.store.database.any_of import IDS, any_of
from stream_app.store.database.tables import session_assignments, session_speakers, sessions
from stream_app.store.stream.repository import Store


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


_SESSION: Final = sa.select(
    sessions.c.session_id, sessions.c.team, sessions.c.domain, sessions.c.channel
).where(any_of(sessions.c.session_id, IDS))
_ASSIGNED: Final = sa.literal(None, sa.Boolean())
_SPEAKERS: Final = sa.union_all(
    sa.select(
        session_speakers.c.session_id, session_speakers.c.speaker, session_speakers.c.reads
    ).where(
        any_of(session_speakers.c.session_id, IDS),
        session_speakers.c.role == Role.COUNSELLOR.value,
    ),
    sa.select(
        session_assignments.c.session_id, session_assignments.c.speaker, _ASSIGNED.label("reads")
    ).where(any_of(session_assignments.c.session_id, IDS)),
)
"""Counsellors who spoke, with whether they read the session, and those it is assigned to."""


def read_routing(store: Store, session_ids: Sequence[str]) -> dict[str, SessionRouting]:
    """Read the attributes of these sessions; unknown ones are left out."""
    given = {IDS: session_ids}
    spoken: dict[str, list[str]] = {}
    readers: dict[str, list[str]] = {}
    with store.reading() as connection:
        for session_id, name, reads in connection.execute(_SPEAKERS, given).all():
            if reads is not None:
                spoken.setdefault(session_id, []).append(name)
            if reads is not False:
                readers.setdefault(session_id, []).append(name)
        return {
            session_id: SessionRouting(
                team,
                domain,
                channel,
                sorted(spoken.get(session_id, [])),
                readers.get(session_id, []),
            )
            for session_id, team, domain, channel in connection.execute(_SESSION, given).all()
        }


def find_readable(store: Store, session_ids: Sequence[str]) -> set[str]:
    """Select those of these sessions that are stored and not hidden."""
    query = sa.select(sessions.c.session_id).where(
        sessions.c.session_id.in_(session_ids), sessions.c.hidden.is_(False)
    )
    with store.reading() as connection:
        return set(connection.scalars(query))
