"""History of a session: risk and mechanisms after each counsellor turn."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, Stage
from stream_app.store.database.pages import Page, decode_cursor, encode_cursor
from stream_app.store.database.tables import turn_scores
from stream_app.store.sessions.scope import Scope
from stream_app.store.stream.repository import Store

ORDER = "history"

Level = Annotated[int | None, Field(ge=0, le=2)]


@dataclass(frozen=True, slots=True)
class TurnPoint:
    """A counsellor turn, scored by one bundle.

    Levels come from the final score if it exists, otherwise from the provisional one. A level is
    null if the model abstained. ``low_empathy_risk`` is the session's risk in [0, 1] after this
    turn.
    """

    seq: int
    occurred_at: datetime
    bundle: str
    stage: Stage
    late: bool
    emotional_reactions: Level
    interpretations: Level
    explorations: Level
    empathy_total: Annotated[int | None, Field(ge=0, le=6)]
    low_empathy_risk: Annotated[float | None, Field(ge=0, le=1)]
    confidence: Annotated[float, Field(ge=0, le=1)]
    abstained: list[str]


def of_session(
    store: Store,
    scope: Scope,
    session_id: str,
    bundle: str | None = None,
    cursor: str | None = None,
    limit: int = 500,
) -> Page[TurnPoint]:
    """A page of counsellor turns, ordered by seq; of one bundle or of all.

    Raises:
        BadCursor: the cursor belongs to another list.
    """
    score = turn_scores
    best = sa.func.min(score.c.stage)  # "final" before "provisional"
    risk = sa.func.max(score.c.low_empathy_risk)  # only one of the two stages has it
    keys = (
        sa.select(score.c.seq, score.c.bundle, best.label("best"), risk.label("risk"))
        .where(
            score.c.session_id == session_id,
            score.c.role == Role.COUNSELLOR.value,
            *scope.conditions(score.c.session_id),
        )
        .group_by(score.c.seq, score.c.bundle)
        .order_by(score.c.seq, score.c.bundle)
        .limit(limit + 1)
    )
    if bundle is not None:
        keys = keys.where(score.c.bundle == bundle)
    if cursor is not None:
        seq, name = decode_cursor(ORDER, cursor, [int, str])
        keys = keys.where(sa.tuple_(score.c.seq, score.c.bundle) > sa.tuple_(seq, name))
    chosen = keys.subquery()
    query = (
        sa.select(score, chosen.c.risk)
        .join(
            chosen,
            (score.c.seq == chosen.c.seq)
            & (score.c.bundle == chosen.c.bundle)
            & (score.c.stage == chosen.c.best),
        )
        .where(score.c.session_id == session_id)
        .order_by(score.c.seq, score.c.bundle)
    )
    with store.reading() as connection:
        found = connection.execute(query).mappings().all()
    points = [_point(row) for row in found[:limit]]
    more = len(found) > limit
    return Page(points, encode_cursor(ORDER, [points[-1].seq, points[-1].bundle]) if more else None)


def _point(row: Mapping[Any, Any]) -> TurnPoint:
    abstained = row["abstained"]
    levels = {name: None if name in abstained else row[name] for name in MECHANISMS}
    known = all(level is not None for level in levels.values())
    return TurnPoint(
        seq=row["seq"],
        occurred_at=row["occurred_at"],
        bundle=row["bundle"],
        stage=Stage(row["stage"]),
        late=row["late"],
        **levels,
        empathy_total=row["empathy_total"] if known else None,
        low_empathy_risk=row["risk"],
        confidence=row["confidence"],
        abstained=abstained,
    )
