"""Counsellors by pseudonym, with their numbers of sessions; deliberately not ranked."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.store.database.pages import Page, decode_cursor, encode_cursor
from stream_app.store.database.tables import archived_sessions, session_speakers, sessions
from stream_app.store.sessions.scope import SCOPES, Scope
from stream_app.store.stream.repository import Store

ORDER = "counsellors"


@dataclass(frozen=True, slots=True)
class Counsellor:
    """A counsellor, ``speaker``: the pseudonym; ``sessions``: their number within the scope.

    Archived sessions count; their last activity is their start.
    """

    speaker: str
    sessions: int
    first_session_at: datetime | None
    last_activity_at: datetime | None


def find(
    store: Store,
    scope: Scope,
    cursor: str | None = None,
    limit: int = 50,
    *,
    team: str | None = None,
    prefix: str | None = None,
) -> Page[Counsellor]:
    """A page of counsellors, by pseudonym.

    ``team``: only those with sessions of this team; ``prefix``: of the pseudonym.

    Raises:
        BadCursor: the cursor belongs to another list.
    """
    query = _counsellors(scope).limit(limit + 1)
    if team is not None:
        of_team = Scope(team=team).conditions(session_speakers.c.session_id, with_archived=True)
        query = query.where(*of_team)
    if prefix is not None:
        query = query.where(session_speakers.c.speaker.startswith(prefix, autoescape=True))
    if cursor is not None:
        [last] = decode_cursor(ORDER, cursor, [str])
        query = query.where(session_speakers.c.speaker > last)
    found = _read(store, query)
    more = len(found) > limit
    return Page(found[:limit], encode_cursor(ORDER, [found[limit - 1].speaker]) if more else None)


def one(store: Store, scope: Scope, speaker: str) -> Counsellor | None:
    """One counsellor; None without a session in ``scope``."""
    found = _read(store, _counsellors(scope).where(session_speakers.c.speaker == speaker))
    return found[0] if found else None


@lru_cache(maxsize=SCOPES)
def _counsellors(scope: Scope) -> sa.Select[Any]:
    """List counsellors; for a counsellor only the own pseudonym, not those of colleagues."""
    participant, session = session_speakers, _stored().subquery("stored")
    query = (
        sa.select(
            participant.c.speaker,
            sa.func.count().label("sessions"),
            sa.func.min(session.c.started_at).label("first_session_at"),
            sa.func.max(session.c.last_activity_at).label("last_activity_at"),
        )
        .join(session, session.c.session_id == participant.c.session_id)
        .where(
            participant.c.role == Role.COUNSELLOR.value,
            *scope.conditions(participant.c.session_id, with_archived=True),
        )
        .group_by(participant.c.speaker)
        .order_by(participant.c.speaker)
    )
    if scope.speaker is not None:
        query = query.where(participant.c.speaker == scope.speaker)
    return query


def _stored() -> sa.CompoundSelect[tuple[str, datetime, datetime]]:
    """Sessions of the database and archived ones, each once."""
    live, moved = sessions.c, archived_sessions.c
    entered = sa.exists().where(moved.session_id == live.session_id)
    return sa.union_all(
        sa.select(live.session_id, live.started_at, live.last_activity_at).where(~entered),
        sa.select(moved.session_id, moved.started_at, moved.started_at.label("last_activity_at")),
    )


def _read(store: Store, query: sa.Select[Any]) -> list[Counsellor]:
    with store.reading() as connection:
        found = connection.execute(query).all()
    return [Counsellor(*values) for values in found]
