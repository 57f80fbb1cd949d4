"""A counsellor's clearest turns of one mechanism in earlier sessions, without text.

The query reads a bounded number of the newest sessions, found by the counsellor's pseudonym, and a
bounded number of their turns.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.contracts.scores import SessionStatus, Stage
from stream_app.store.database.tables import session_scores, session_speakers, turn_scores, turns
from stream_app.store.sessions.scope import Scope
from stream_app.store.stream.repository import Store

LOOK_BACK: Final = timedelta(days=90)
"""Text is rarely kept longer."""
SESSIONS: Final = 20
"""Number of the newest earlier sessions."""
TURNS: Final = 40
"""Maximum number of turns, those with the highest levels first."""


@dataclass(frozen=True, slots=True)
class ClearTurn:
    """A turn that expresses the mechanism; ``expressed`` as in the wire contract."""

    session_id: str
    seq: int
    bundle: str
    occurred_at: datetime
    expressed: dict[str, Any]
    abstained: list[str]


def before_session(
    store: Store, scope: Scope, speaker: str, mechanism: str, began: datetime
) -> list[ClearTurn]:
    """Turns of ended sessions in ``scope`` that began before this time and still have text.

    Late turns, and turns on which the head abstained, are left out.
    """
    session, who, score = session_scores, session_speakers, turn_scores
    newest = (
        sa.select(session.c.session_id, session.c.bundle)
        .join(who, who.c.session_id == session.c.session_id)
        .where(
            who.c.speaker == speaker,
            who.c.role == Role.COUNSELLOR.value,
            session.c.status != SessionStatus.OPEN.value,
            session.c.started_at < began,
            session.c.started_at >= began - LOOK_BACK,
            *scope.conditions(session.c.session_id),
        )
        .order_by(session.c.started_at.desc(), session.c.session_id, session.c.bundle)
        .limit(SESSIONS)
        .subquery()
    )
    level = score.c[mechanism]
    query = (
        sa.select(
            score.c.session_id,
            score.c.seq,
            score.c.bundle,
            score.c.occurred_at,
            score.c.expressed,
            score.c.abstained,
        )
        .join(
            newest,
            (newest.c.session_id == score.c.session_id) & (newest.c.bundle == score.c.bundle),
        )
        .join(turns, (turns.c.session_id == score.c.session_id) & (turns.c.seq == score.c.seq))
        .where(
            turns.c.speaker == speaker,
            turns.c.role == Role.COUNSELLOR.value,
            turns.c.text.is_not(None),
            score.c.stage == Stage.FINAL.value,
            score.c.late.is_(False),
            level > 0,
        )
        .order_by(level.desc(), score.c.occurred_at.desc(), score.c.session_id, score.c.seq)
        .limit(TURNS)
    )
    with store.reading() as connection:
        return [
            ClearTurn(
                row["session_id"],
                row["seq"],
                row["bundle"],
                row["occurred_at"],
                row["expressed"],
                row["abstained"],
            )
            for row in connection.execute(query).mappings()
            if mechanism not in row["abstained"]
        ]
