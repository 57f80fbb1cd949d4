"""Ended sessions with their participants, as input of cohort statistics."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.contracts.scores import SessionStatus
from stream_app.store.queries.scope import Scope
from stream_app.store.repository import Store
from stream_app.store.tables import session_scores, session_speakers, sessions


@dataclass(frozen=True, slots=True)
class CohortSession:
    """An ended session; ``means``: mean level by mechanism.

    The pseudonyms are only for counting people; do not show them.
    """

    team: str | None
    domain: str | None
    clients: frozenset[str]
    counsellors: frozenset[str]
    means: dict[str, float]


def read(store: Store, scope: Scope, bundle: str, since: datetime) -> list[CohortSession]:
    """Ended sessions that started after ``since`` and were scored by the bundle."""
    score = session_scores
    chosen = (
        score.c.bundle == bundle,
        score.c.status != SessionStatus.OPEN.value,
        score.c.started_at >= since,
        score.c.counsellor_turns > 0,
        *scope.conditions(score.c.session_id),
    )
    query = (
        sa.select(score.c.session_id, score.c.mechanisms, sessions.c.team, sessions.c.domain)
        .join(sessions, sessions.c.session_id == score.c.session_id)
        .where(*chosen)
        .order_by(score.c.session_id)
    )
    participants = (
        sa.select(
            session_speakers.c.session_id, session_speakers.c.speaker, session_speakers.c.role
        )
        .join(score, score.c.session_id == session_speakers.c.session_id)
        .where(*chosen)
    )
    speakers: dict[tuple[str, str], set[str]] = defaultdict(set)
    with store.reading() as connection:
        for session_id, speaker, role in connection.execute(participants):
            speakers[session_id, role].add(speaker)
        return [
            CohortSession(
                team=row.team,
                domain=row.domain,
                clients=frozenset(speakers[row.session_id, Role.CLIENT.value]),
                counsellors=frozenset(speakers[row.session_id, Role.COUNSELLOR.value]),
                means={name: part["mean"] for name, part in row.mechanisms.items()},
            )
            for row in connection.execute(query)
        ]
