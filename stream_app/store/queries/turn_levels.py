"""A counsellor's levels over many sessions, without text."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.contracts.scores import SessionStatus, Stage
from stream_app.store.queries.scope import Scope
from stream_app.store.repository import Store
from stream_app.store.tables import bundles, session_scores, turn_scores, turns


@dataclass(frozen=True, slots=True)
class TurnLevels:
    """The final score of a counsellor turn; ``expressed`` as in the wire contract.

    ``client_said``: characters of client text since the previous counsellor turn.
    """

    session_id: str
    seq: int
    bundle: str
    started_at: datetime
    expressed: dict[str, Any]
    abstained: list[str]
    client_said: int


def of_counsellor(store: Store, scope: Scope, speaker: str, since: datetime) -> list[TurnLevels]:
    """A counsellor's turns in ended sessions that started after ``since``, ordered by time.

    Late turns are left out. Of a session scored by several bundles, only the scores of the most
    recently introduced bundle are returned.
    """
    score, session = turn_scores, session_scores
    query = (
        sa.select(
            score.c.session_id,
            score.c.seq,
            score.c.bundle,
            session.c.started_at,
            score.c.expressed,
            score.c.abstained,
            bundles.c.first_used_at,
        )
        .join(turns, (turns.c.session_id == score.c.session_id) & (turns.c.seq == score.c.seq))
        .join(
            session,
            (session.c.session_id == score.c.session_id) & (session.c.bundle == score.c.bundle),
        )
        .join(bundles, bundles.c.bundle == score.c.bundle)
        .where(
            turns.c.speaker == speaker,
            score.c.role == Role.COUNSELLOR.value,
            score.c.stage == Stage.FINAL.value,
            score.c.late.is_(False),
            session.c.status != SessionStatus.OPEN.value,
            session.c.started_at >= since,
            *scope.conditions(score.c.session_id),
        )
        .order_by(session.c.started_at, score.c.session_id, score.c.seq)
    )
    with store.reading() as connection:
        found = connection.execute(query).mappings().all()
        client_chars = _client_chars(connection, sorted({row["session_id"] for row in found}))
    newest: dict[str, tuple[datetime, str]] = {}
    for row in found:
        used = row["first_used_at"], row["bundle"]
        newest[row["session_id"]] = max(newest.get(row["session_id"], used), used)
    return [
        TurnLevels(
            session_id=row["session_id"],
            seq=row["seq"],
            bundle=row["bundle"],
            started_at=row["started_at"],
            expressed=row["expressed"],
            abstained=row["abstained"],
            client_said=client_chars.get((row["session_id"], row["seq"]), 0),
        )
        for row in found
        if newest[row["session_id"]][1] == row["bundle"]
    ]


def _client_chars(
    connection: sa.Connection, session_ids: Sequence[str]
) -> dict[tuple[str, int], int]:
    """By counsellor turn, characters of client text since the previous counsellor turn."""
    query = (
        sa.select(
            turns.c.session_id,
            turns.c.seq,
            turns.c.role,
            sa.case(
                (turns.c.text.is_(None), 0),
                else_=sa.func.coalesce(turns.c.chars, sa.func.length(turns.c.text)),
            ).label("length"),
        )
        .where(turns.c.session_id.in_(session_ids))
        .order_by(turns.c.session_id, turns.c.seq)
    )
    chars: dict[tuple[str, int], int] = {}
    pending: dict[str, int] = defaultdict(int)
    for session_id, seq, role, length in connection.execute(query):
        if role == Role.CLIENT.value:
            pending[session_id] += length
        else:
            chars[session_id, seq] = pending.pop(session_id, 0)
    return chars
