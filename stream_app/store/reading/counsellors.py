"""Who counsels: pseudonyms with the number of their sessions, in no order of merit."""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.store.reading.pages import Page, cursor_of, place_of
from stream_app.store.reading.scope import Scope
from stream_app.store.repository import Store
from stream_app.store.tables import session_speakers, sessions

ORDER = "counsellors"


@dataclass(frozen=True, slots=True)
class Counsellor:
    """A counsellor's pseudonym; ``sessions``: how many of them may be read here."""

    speaker: str
    sessions: int
    first_session_at: datetime | None
    last_activity_at: datetime | None


def find(
    store: Store, scope: Scope, cursor: str | None = None, limit: int = 50
) -> Page[Counsellor]:
    """A page of counsellors, by pseudonym.

    Raises:
        BadCursor: the cursor is not of this list.
    """
    query = _counsellors(scope).limit(limit + 1)
    if cursor is not None:
        [place] = place_of(ORDER, cursor, [str])
        query = query.where(session_speakers.c.speaker > place)
    found = _read(store, query)
    more = len(found) > limit
    return Page(found[:limit], cursor_of(ORDER, [found[limit - 1].speaker]) if more else None)


def one(store: Store, scope: Scope, speaker: str) -> Counsellor | None:
    """One counsellor; None if none of their sessions may be read."""
    found = _read(store, _counsellors(scope).where(session_speakers.c.speaker == speaker))
    return found[0] if found else None


def _counsellors(scope: Scope) -> sa.Select[tuple[str, int, datetime, datetime]]:
    """A counsellor sees the own pseudonym, not that of a colleague in the same session."""
    who, fact = session_speakers, sessions
    query = (
        sa.select(
            who.c.speaker,
            sa.func.count().label("sessions"),
            sa.func.min(fact.c.started_at).label("first_session_at"),
            sa.func.max(fact.c.last_activity_at).label("last_activity_at"),
        )
        .join(fact, fact.c.session_id == who.c.session_id)
        .where(who.c.role == Role.COUNSELLOR.value, *scope.conditions(who.c.session_id))
        .group_by(who.c.speaker)
        .order_by(who.c.speaker)
    )
    if scope.speaker is not None:
        query = query.where(who.c.speaker == scope.speaker)
    return query


def _read(store: Store, query: sa.Select[tuple[str, int, datetime, datetime]]) -> list[Counsellor]:
    with store.reading() as connection:
        return [Counsellor(**row) for row in connection.execute(query).mappings()]
