"""A session's turns with their scores; the only query that returns text."""

from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, Final

import sqlalchemy as sa
from pydantic import Field

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage, TurnScore, Unscored
from stream_app.sealing.keyring import Wrapped
from stream_app.store.database.described import described_by
from stream_app.store.database.tables import session_keys, session_speakers, turn_scores, turns
from stream_app.store.keys.session_keys import place, unseal_or_none
from stream_app.store.sessions.scope import SCOPES, Scope
from stream_app.store.stream.repository import Store


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


def unscored_languages(store: Store, scope: Scope, session_id: str) -> dict[str | None, int]:
    """How many turns of a session are not scored for their language, by its tag; most first.

    None stands for a language that is not known. Empty if the session is not in ``scope``.
    """
    count = sa.func.count()
    query = (
        sa.select(turns.c.language, count)
        .where(
            turns.c.session_id == session_id,
            turns.c.unscored == Unscored.LANGUAGE.value,
            *scope.conditions(turns.c.session_id),
        )
        .group_by(turns.c.language)
        .order_by(count.desc(), turns.c.language)
    )
    with store.reading() as connection:
        return {row[0]: row[1] for row in connection.execute(query)}


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
    query = _turns(scope, limit)
    if only_seq is not None:
        query = query.where(turns.c.seq == only_seq)
    with store.reading() as connection:
        found = connection.execute(query, {"of": session_id, "after": after_seq}).all()
        if not found:
            return []
        scores = _scores(connection, session_id, found[0].seq, found[-1].seq, only_best)
    wrapped = Wrapped(found[0].master_key, found[0].wrapped) if found[0].wrapped else None
    key = store.keys.master.unwrap(wrapped, session_id) if wrapped is not None else None
    return [
        TurnRead(
            session_id=session_id,
            seq=row.seq,
            turn_id=row.turn_id,
            speaker=row.speaker,
            role=Role(row.role),
            text=unseal_or_none(key, row.text, place(turns.c.text, session_id, row.seq)),
            occurred_at=row.occurred_at,
            late=row.late,
            scores=scores.get(row.seq, []),
            unscored=Unscored(row.unscored) if row.unscored else None,
        )
        for row in found
    ]


def several(store: Store, session_id: str) -> frozenset[Role]:
    """The roles that several people have in a session, who have to be told apart."""
    with store.reading() as connection:
        return frozenset(map(Role, connection.scalars(_SEVERAL, {"of": session_id})))


_SEVERAL: Final = (
    sa.select(session_speakers.c.role)
    .where(session_speakers.c.session_id == sa.bindparam("of"))
    .group_by(session_speakers.c.role)
    .having(sa.func.count() > 1)
)
_TURN: Final = [
    turns.c[name]
    for name in ("seq", "turn_id", "speaker", "role", "text", "occurred_at", "late", "unscored")
]


@lru_cache(maxsize=SCOPES)
def _turns(scope: Scope, limit: int) -> sa.Select[Any]:
    """Turns with their session's key; building the statement takes longer than running it."""
    return (
        sa.select(*_TURN, session_keys.c.master_key, session_keys.c.wrapped)
        .outerjoin_from(turns, session_keys, session_keys.c.session_id == turns.c.session_id)
        .where(
            turns.c.session_id == sa.bindparam("of"),
            turns.c.seq > sa.bindparam("after"),
            *scope.conditions(turns.c.session_id),
        )
        .order_by(turns.c.seq)
        .limit(limit)
    )


_SCORES: Final = (
    sa.select(*(turn_scores.c[each.name] for each in fields(ScoreOfTurn)), turn_scores.c.seq)
    .where(
        turn_scores.c.session_id == sa.bindparam("of"),
        turn_scores.c.seq.between(sa.bindparam("first"), sa.bindparam("last")),
    )
    .order_by(turn_scores.c.seq, turn_scores.c.bundle.desc(), turn_scores.c.stage)
)
"""Final scores before provisional ones."""
_final: Final = turn_scores.alias("final")
_BEST_SCORES: Final = _SCORES.where(
    turn_scores.c.bundle == sa.bindparam("only"),
    (turn_scores.c.stage == Stage.FINAL.value)
    | ~sa.exists().where(
        _final.c.session_id == turn_scores.c.session_id,
        _final.c.seq == turn_scores.c.seq,
        _final.c.bundle == turn_scores.c.bundle,
        _final.c.stage == Stage.FINAL.value,
    ),
)


def _scores(
    connection: sa.Connection, session_id: str, first: int, last: int, only_best: str | None
) -> dict[int, list[ScoreOfTurn]]:
    given: dict[str, Any] = {"of": session_id, "first": first, "last": last}
    query = _SCORES
    if only_best is not None:
        query, given["only"] = _BEST_SCORES, only_best
    found: dict[int, list[ScoreOfTurn]] = {}
    for bundle, stage, *values, seq in connection.execute(query, given).all():
        found.setdefault(seq, []).append(ScoreOfTurn(bundle, Stage(stage), *values))
    return found
