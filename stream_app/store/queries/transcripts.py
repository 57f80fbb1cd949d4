"""A session's turns with their scores; the only query that returns text."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage, TurnScore, Unscored
from stream_app.store.queries.described import described_by
from stream_app.store.queries.scope import Scope
from stream_app.store.repository import Store
from stream_app.store.session_keys import place, unseal_or_none
from stream_app.store.tables import turn_scores, turns


@dataclass(frozen=True, slots=True)
@described_by(TurnScore)
class ScoreOfTurn:
    """A stored turn score; JSON parts as in the wire contract's ``turn_score``."""

    bundle: str
    stage: Stage
    late: bool
    truncated: bool
    empathy_total: Annotated[int | None, Field(ge=0, le=6, description="Sum of the levels")]
    confidence: float
    low_empathy_risk: Annotated[
        float | None,
        Field(
            ge=0, le=1, description="The session's risk after this turn; only on its first score"
        ),
    ]
    expressed: Annotated[
        dict[str, Any],
        Field(
            description="Mechanisms with level 0-2, three probabilities and rationale spans; other "
            "heads with the probability of each label"
        ),
    ]
    perceived: Annotated[
        dict[str, float],
        Field(
            description="Probabilities of how the turn is perceived, by head; "
            "`perceived.groups` of the bundle's manifest defines groups of heads shown as one value"
        ),
    ]
    client: Annotated[dict[str, dict[str, float]], Field(description="Heads of client turns")]
    abstained: list[str]
    intents: Annotated[
        dict[str, float],
        Field(description="Scores of the intents that the turn has, by name (docs/intents.md)"),
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnRead:
    """A turn; ``text`` is redacted, and None after it expired or was erased.

    ``scores``: of every stage and bundle, newest bundle first, final before provisional.
    """

    session_id: str
    seq: int
    turn_id: str | None
    speaker: str
    role: Role
    text: str | None
    occurred_at: datetime
    late: bool
    scores: list[ScoreOfTurn] = field(default_factory=list)
    unscored: Annotated[
        Unscored | None,
        Field(description="Why it has no score: `language`, no bundle covers its language"),
    ] = None

    def score(self, bundle: str) -> ScoreOfTurn | None:
        """The best score by a bundle: final before provisional."""
        return next((score for score in self.scores if score.bundle == bundle), None)


def read(
    store: Store,
    scope: Scope,
    session_id: str,
    *,
    after_seq: int = -1,
    only_seq: int | None = None,
    only_best: str | None = None,
    limit: int = 1000,
) -> list[TurnRead]:
    """Turns after ``after_seq``, ordered by seq; empty if the session is not in ``scope``.

    ``only_best``: of the scores only this bundle's, and of each turn the final one if there is one.
    """
    query = (
        sa.select(turns)
        .where(
            turns.c.session_id == session_id,
            turns.c.seq > after_seq,
            *scope.conditions(turns.c.session_id),
        )
        .order_by(turns.c.seq)
        .limit(limit)
    )
    if only_seq is not None:
        query = query.where(turns.c.seq == only_seq)
    with store.reading() as connection:
        found = connection.execute(query).mappings().all()
        if not found:
            return []
        key = store.keys.load(connection, [session_id]).get(session_id)
        chosen = (session_id, found[0]["seq"], found[-1]["seq"])
        scores = _scores(connection, *chosen, only_best)
    return [
        TurnRead(
            session_id=row["session_id"],
            seq=row["seq"],
            turn_id=row["turn_id"],
            speaker=row["speaker"],
            role=Role(row["role"]),
            text=unseal_or_none(key, row["text"], place(turns.c.text, session_id, row["seq"])),
            occurred_at=row["occurred_at"],
            late=row["late"],
            scores=scores.get(row["seq"], []),
            unscored=Unscored(row["unscored"]) if row["unscored"] else None,
        )
        for row in found
    ]


def _scores(
    connection: sa.Connection, session_id: str, first: int, last: int, only_best: str | None
) -> dict[int, list[ScoreOfTurn]]:
    table = turn_scores
    query = (
        sa.select(table)
        .where(table.c.session_id == session_id, table.c.seq.between(first, last))
        .order_by(table.c.seq, table.c.bundle.desc(), table.c.stage)  # final before provisional
    )
    if only_best is not None:
        final = table.alias("final")
        superseded = sa.exists().where(
            final.c.session_id == table.c.session_id,
            final.c.seq == table.c.seq,
            final.c.bundle == table.c.bundle,
            final.c.stage == Stage.FINAL.value,
        )
        is_best = (table.c.stage == Stage.FINAL.value) | ~superseded
        query = query.where(table.c.bundle == only_best, is_best)
    found: dict[int, list[ScoreOfTurn]] = {}
    for row in connection.execute(query).mappings():
        found.setdefault(row["seq"], []).append(
            ScoreOfTurn(
                bundle=row["bundle"],
                stage=Stage(row["stage"]),
                late=row["late"],
                truncated=row["truncated"],
                empathy_total=row["empathy_total"],
                confidence=row["confidence"],
                low_empathy_risk=row["low_empathy_risk"],
                expressed=row["expressed"],
                perceived=row["perceived"],
                client=row["client"],
                abstained=row["abstained"],
                intents=row["intents"],
            )
        )
    return found
