"""Reads what is stored of a session, for edits and deletions (``core.pipeline.revision``)."""

import msgspec
import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Expressed, Level, Stage, TurnScore, Unscored
from stream_app.core.session.past import NO_PAST, PastSession, PastTurn
from stream_app.store.database.connection import Database
from stream_app.store.database.tables import holds, turn_scores, turns
from stream_app.store.keys.session_keys import SessionKeys, place, unseal_or_none


def read(database: Database, keys: SessionKeys, session_id: str) -> PastSession:
    """The turns of a session with their texts, and their scores by every bundle."""
    of_session = sa.select(turns).where(turns.c.session_id == session_id).order_by(turns.c.seq)
    scored = sa.select(turn_scores).where(turn_scores.c.session_id == session_id)
    with database.reading() as connection:
        rows = connection.execute(of_session).mappings().all()
        if not rows:
            return NO_PAST
        scores = connection.execute(scored).mappings().all()
        key = keys.load(connection, [session_id]).get(session_id)
        hold = sa.select(holds.c.session_id).where(holds.c.session_id == session_id)
        on_hold = connection.scalar(hold) is not None
    return PastSession(
        [_turn(row, key) for row in rows], [turn_score(row) for row in scores], on_hold
    )


def _turn(row: sa.RowMapping, key: bytes | None) -> PastTurn:
    where = place(turns.c.text, row["session_id"], row["seq"])
    return PastTurn(
        seq=row["seq"],
        role=Role(row["role"]),
        text=unseal_or_none(key, row["text"], where),
        occurred_at=row["occurred_at"],
        words=row["words"],
        late=row["late"],
        arrived_at=row["produced_at"] or row["stored_at"],
        unscored=Unscored(row["unscored"]) if row["unscored"] else None,
        turn_id=row["turn_id"],
        speaker=row["speaker"] or "",
    )


def turn_score(row: sa.RowMapping) -> TurnScore:
    """The score of a row."""
    return TurnScore(
        session_id=row["session_id"],
        seq=row["seq"],
        stage=Stage(row["stage"]),
        bundle=row["bundle"],
        role=Role(row["role"]),
        occurred_at=row["occurred_at"],
        late=row["late"],
        truncated=row["truncated"],
        expressed=expressed_of(row),
        perceived=row["perceived"],
        client=row["client"],
        confidence=row["confidence"],
        abstained=row["abstained"],
        low_empathy_risk=row["low_empathy_risk"],
        intents=row["intents"],
    )


def expressed_of(row: sa.RowMapping) -> Expressed:
    """What the counsellor expressed, by head, in a row of ``turn_scores``."""
    expressed = Expressed()
    for name, part in row["expressed"].items():
        leveled = isinstance(part, dict) and "level" in part
        expressed[name] = msgspec.convert(part, Level) if leveled else part
    return expressed
