"""Open sessions by urgency: which of them a wall shows, without reading all of them."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.contracts.scores import SessionStatus
from stream_app.store.database.any_of import IDS, any_of, in_set
from stream_app.store.database.tables import session_speakers
from stream_app.store.sessions.scope import SCOPES, Scope
from stream_app.store.sessions.sessions import NO_RISK_YET, SessionFilter, newest_scores
from stream_app.store.stream.repository import Store

_IDS_AT_A_TIME: Final = 1000
_COUNSELLORS: Final = sa.select(session_speakers.c.session_id, session_speakers.c.speaker).where(
    any_of(session_speakers.c.session_id, IDS), session_speakers.c.role == Role.COUNSELLOR.value
)


@dataclass(frozen=True, slots=True)
class LiveSession:
    """What a search looks at; ``counsellors``: pseudonyms."""

    session_id: str
    team: str | None
    domain: str | None
    counsellors: list[str] = field(default_factory=list)


def by_urgency(
    store: Store,
    scope: Scope,
    chosen: SessionFilter,
    *,
    pinned: Collection[str],
    unanswered: Collection[str],
    limit: int,
) -> tuple[list[LiveSession], int]:
    """The most urgent open sessions, without their counsellors, and the number of all.

    Pinned sessions come first, then those with an unanswered alert, then the highest risk.
    """
    lists = {"pinned": pinned, "unanswered": unanswered}
    first = {name: sorted(ids) for name, ids in lists.items() if ids}
    query = _by_urgency(scope, chosen, tuple(first), limit)
    with store.reading() as connection:
        found = connection.execute(query, first).all()
    return [LiveSession(*row[:3]) for row in found], found[0].all if found else 0


@lru_cache(maxsize=SCOPES)
def _by_urgency(
    scope: Scope, chosen: SessionFilter, first: tuple[str, ...], limit: int
) -> sa.Select[Any]:
    """``first``: parameters with lists of ids that come before others."""
    newest = newest_scores(scope, replace(chosen, status=SessionStatus.OPEN))
    session_id = newest.c.session_id
    order = [sa.case((in_set(session_id, name), 0), else_=1) for name in first]
    risk = sa.func.coalesce(newest.c.low_empathy_risk, NO_RISK_YET)
    columns: list[sa.ColumnElement[Any]] = [session_id, newest.c.team, newest.c.domain]
    return (
        sa.select(*columns, sa.func.count().over().label("all"))
        .order_by(*order, risk.desc(), session_id)
        .limit(limit)
    )


def with_counsellors(store: Store, found: Sequence[LiveSession]) -> list[LiveSession]:
    """The same sessions with their counsellors."""
    speakers: dict[str, list[str]] = defaultdict(list)
    with store.reading() as connection:
        for first in range(0, len(found), _IDS_AT_A_TIME):
            ids = [one.session_id for one in found[first : first + _IDS_AT_A_TIME]]
            for session_id, speaker in connection.execute(_COUNSELLORS, {IDS: ids}).all():
                speakers[session_id].append(speaker)
    return [replace(one, counsellors=speakers[one.session_id]) for one in found]


def count(store: Store, scope: Scope, chosen: SessionFilter) -> int:
    """The number of open sessions."""
    newest = newest_scores(scope, replace(chosen, status=SessionStatus.OPEN))
    with store.reading() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(newest)) or 0
