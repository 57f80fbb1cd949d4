"""Where a session's empathy index lies among comparable ended sessions of this installation.

The reference that a bundle ships with describes its training corpora. Sessions elsewhere may all
lie above it, or anywhere; so a person is shown the place among sessions like this one, or nothing.
"""

import statistics
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from stream_app.contracts.scores import SessionStatus
from stream_app.core.measures.empathy import ENOUGH_SESSIONS, SPREAD
from stream_app.store.database.tables import session_scores, sessions
from stream_app.store.sessions.sessions import SessionCard
from stream_app.store.stream.repository import Store

MOST: Final = 1000
"""Sessions compared with, the latest."""
_ENDED: Final = (SessionStatus.CLOSED.value, SessionStatus.IDLE.value)


@dataclass(frozen=True, slots=True)
class Place:
    """``sessions`` are compared with; ``above``: the share of them with a lower index."""

    sessions: int
    above: float


def place(store: Store, card: SessionCard) -> Place | None:
    """The session's place; None without an index or without sessions that it can be compared with.

    Comparable are ended sessions of the same bundle, domain, language and method, of all teams; at
    least ``ENOUGH_SESSIONS``, whose middle half spreads over ``SPREAD``.
    """
    if card.empathy_index is None or card.domain is None:
        return None
    interviewing = session_scores.c.miti.is_not(sa.null())
    query = (
        sa.select(session_scores.c.empathy_index)
        .join(sessions, sessions.c.session_id == session_scores.c.session_id)
        .where(
            session_scores.c.bundle == card.bundle,
            session_scores.c.status.in_(_ENDED),
            session_scores.c.session_id != card.session_id,
            session_scores.c.empathy_index.is_not(None),
            interviewing if card.miti is not None else ~interviewing,
            sessions.c.domain == card.domain,
            sessions.c.lang.is_not_distinct_from(card.lang),
            ~sessions.c.hidden,
        )
        .order_by(session_scores.c.activity_hour.desc())
        .limit(MOST)
    )
    with store.reading() as connection:
        found = list(connection.scalars(query))
    if len(found) < ENOUGH_SESSIONS:
        return None
    lower, _, upper = statistics.quantiles(found, n=4)
    if upper - lower < SPREAD:
        return None
    return Place(len(found), sum(index < card.empathy_index for index in found) / len(found))
