"""Where sessions belong and who counsels in them: what decides who is told of their events."""

from collections.abc import Sequence

import sqlalchemy as sa
from msgspec import Struct

from stream_app.contracts.events import Role
from stream_app.store.repository import Store
from stream_app.store.tables import session_speakers, sessions


class Facts(Struct, frozen=True):
    """``counsellors``: pseudonyms of those who have spoken so far."""

    team: str | None = None
    domain: str | None = None
    channel: str | None = None
    counsellors: list[str] = []


def look_up(store: Store, session_ids: Sequence[str]) -> dict[str, Facts]:
    """Facts of these sessions; unknown ones are left out."""
    fact, speaker = sessions, session_speakers
    found = sa.select(fact.c.session_id, fact.c.team, fact.c.domain, fact.c.channel).where(
        fact.c.session_id.in_(session_ids)
    )
    spoke = (
        sa.select(speaker.c.session_id, speaker.c.speaker)
        .where(speaker.c.session_id.in_(session_ids), speaker.c.role == Role.COUNSELLOR.value)
        .order_by(speaker.c.session_id, speaker.c.speaker)
    )
    with store.reading() as connection:
        who: dict[str, list[str]] = {}
        for session_id, name in connection.execute(spoke):
            who.setdefault(session_id, []).append(name)
        return {
            row.session_id: Facts(row.team, row.domain, row.channel, who.get(row.session_id, []))
            for row in connection.execute(found)
        }
