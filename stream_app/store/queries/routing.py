"""Attributes of sessions that determine which clients receive their live events."""

from collections.abc import Sequence

import sqlalchemy as sa
from msgspec import Struct

from stream_app.contracts.events import Role
from stream_app.store.repository import Store
from stream_app.store.tables import session_speakers, sessions


class SessionRouting(Struct, frozen=True):
    """Attributes of one session; ``counsellors``: pseudonyms of those who have spoken so far."""

    team: str | None = None
    domain: str | None = None
    channel: str | None = None
    counsellors: list[str] = []


def read_routing(store: Store, session_ids: Sequence[str]) -> dict[str, SessionRouting]:
    """Read the attributes of these sessions; unknown ones are left out."""
    session, speaker = sessions, session_speakers
    found = sa.select(
        session.c.session_id, session.c.team, session.c.domain, session.c.channel
    ).where(session.c.session_id.in_(session_ids))
    counsellors = (
        sa.select(speaker.c.session_id, speaker.c.speaker)
        .where(speaker.c.session_id.in_(session_ids), speaker.c.role == Role.COUNSELLOR.value)
        .order_by(speaker.c.session_id, speaker.c.speaker)
    )
    with store.reading() as connection:
        by_session: dict[str, list[str]] = {}
        for session_id, name in connection.execute(counsellors):
            by_session.setdefault(session_id, []).append(name)
        return {
            row.session_id: SessionRouting(
                row.team, row.domain, row.channel, by_session.get(row.session_id, [])
            )
            for row in connection.execute(found)
        }
