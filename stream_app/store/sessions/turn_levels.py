"""A counsellor's levels over many sessions, without text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa

from stream_app.contracts.events import SCORED_ROLES, Role
from stream_app.contracts.scores import MECHANISMS, SessionStatus, Stage
from stream_app.store.database.any_of import IDS, any_of
from stream_app.store.database.tables import bundles, session_scores, turn_scores, turns
from stream_app.store.sessions.scope import SCOPES, Scope
from stream_app.store.stream.repository import Store


@dataclass(frozen=True, slots=True)
class TurnLevels:
    """The final score of a counsellor turn; ``levels``: 0 to 2, by mechanism."""

    session_id: str
    seq: int
    bundle: str
    started_at: datetime
    levels: dict[str, int]
    abstained: list[str]


@dataclass(frozen=True, slots=True)
class LevelsInFull:
    """``expressed`` as in the wire contract.

    ``asked``: the largest opportunity of the client turns since the previous counsellor turn; None
    if there is none, or turns between them have no score.
    """

    turn: TurnLevels
    expressed: dict[str, Any]
    asked: float | None


def of_counsellor(store: Store, scope: Scope, speaker: str, since: datetime) -> list[TurnLevels]:
    """A counsellor's turns in ended sessions that started after ``since``, ordered by time.

    Late turns are left out. Of a session scored by several bundles, only the scores of the most
    recently introduced bundle are returned.
    """
    with store.reading() as connection:
        given = {"by": speaker, "since": since}
        found = connection.execute(_of_counsellor(scope), given).all()
    newest: dict[str, tuple[datetime, str]] = {}
    for row in found:
        used = row.first_used_at, row.bundle
        newest[row.session_id] = max(newest.get(row.session_id, used), used)
    return [
        TurnLevels(session_id, seq, bundle, started_at, _present(levels), abstained)
        for session_id, seq, bundle, started_at, abstained, _, *levels in found
        if newest[session_id][1] == bundle
    ]


def in_full(store: Store, chosen: Sequence[TurnLevels]) -> list[LevelsInFull]:
    """The same turns with all that is stored of their mechanisms; for a few sessions."""
    given = {IDS: sorted({turn.session_id for turn in chosen})}
    expressed: dict[tuple[str, int, str], dict[str, Any]] = {}
    asked: dict[tuple[str, int, str], float | None] = {}
    pending: dict[tuple[str, str], tuple[int, float | None]] = {}
    with store.reading() as connection:
        asides = {(row.session_id, row.seq) for row in connection.execute(_ASIDES, given)}
        for session_id, seq, bundle, role, said, client in connection.execute(_SCORES, given):
            last, so_far = pending.get((session_id, bundle), (-1, None))
            between = range(last + 1, seq) if so_far is not None else ()
            so_far = so_far if all((session_id, each) in asides for each in between) else None
            if role == Role.CLIENT.value:
                so_far = max(filter(None, (so_far, opportunity(client))), default=None)
                pending[session_id, bundle] = seq, so_far
            else:
                expressed[session_id, seq, bundle] = said
                asked[session_id, seq, bundle] = so_far
                pending[session_id, bundle] = seq, None
    return [
        LevelsInFull(turn, expressed[key], asked[key])
        for turn in chosen
        if (key := (turn.session_id, turn.seq, turn.bundle)) in expressed  # else erased meanwhile
    ]


def opportunity(client: Mapping[str, Mapping[str, float]]) -> float | None:
    """How much a client turn calls for empathy, by its stored heads; None without the head."""
    return client.get("opportunity", {}).get("yes")


def _present(levels: Sequence[int | None]) -> dict[str, int]:
    named = zip(MECHANISMS, levels, strict=True)
    return {name: level for name, level in named if level is not None}


@lru_cache(maxsize=SCOPES)
def _of_counsellor(scope: Scope) -> sa.Select[Any]:
    score, session = turn_scores, session_scores
    return (
        sa.select(
            score.c.session_id,
            score.c.seq,
            score.c.bundle,
            session.c.started_at,
            score.c.abstained,
            bundles.c.first_used_at,
            *(score.c[name] for name in MECHANISMS),
        )
        .join(turns, (turns.c.session_id == score.c.session_id) & (turns.c.seq == score.c.seq))
        .join(
            session,
            (session.c.session_id == score.c.session_id) & (session.c.bundle == score.c.bundle),
        )
        .join(bundles, bundles.c.bundle == score.c.bundle)
        .where(
            turns.c.speaker == sa.bindparam("by"),
            score.c.role == Role.COUNSELLOR.value,
            score.c.stage == Stage.FINAL.value,
            score.c.late.is_(False),
            session.c.status != SessionStatus.OPEN.value,
            session.c.started_at >= sa.bindparam("since", type_=session.c.started_at.type),
            *scope.conditions(score.c.session_id),
        )
        .order_by(session.c.started_at, score.c.session_id, score.c.seq)
    )


_ASIDES: Final = sa.select(turns.c.session_id, turns.c.seq).where(
    any_of(turns.c.session_id, IDS), turns.c.role.not_in([role.value for role in SCORED_ROLES])
)
_SCORES: Final = (
    sa.select(
        turn_scores.c.session_id,
        turn_scores.c.seq,
        turn_scores.c.bundle,
        turn_scores.c.role,
        turn_scores.c.expressed,
        turn_scores.c.client,
    )
    .where(any_of(turn_scores.c.session_id, IDS), turn_scores.c.stage == Stage.FINAL.value)
    .order_by(turn_scores.c.session_id, turn_scores.c.seq)
)
