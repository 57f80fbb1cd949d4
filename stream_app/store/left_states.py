"""Sessions that another bundle had begun to score: their open states are closed, too.

A state belongs to the default bundle of its time. When another one comes into force, or an earlier
one again, sessions continue with that one, and nothing continues or ends what was left behind. Only
the status is changed, so that a worker with that bundle could still continue the session.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.contracts.scores import SessionStatus, Stage
from stream_app.store import session_locks, tables
from stream_app.store.periods import seen_period
from stream_app.store.repository import Store

AT_ONCE: Final = 200
_states: Final = tables.session_states
_own: Final = tables.session_states.alias()


def close(
    store: Store, bundle: str, before: datetime, partitions: Sequence[int], limit: int = AT_ONCE
) -> int:
    """Close states of other bundles than ``bundle``; return the number of sessions.

    Those of sessions that have ended under it are closed, and those last heard of before ``before``
    are idle. Turns that were still waiting for following ones get their provisional score as the
    final one, because the bundle that could compute it need not be installed any more.
    """
    query = (
        sa.select(_states.c.session_id, _states.c.bundle, _ended(bundle))
        .where(
            _states.c.bundle.in_(_others(bundle)),
            _states.c.partition.in_(partitions),
            sa.or_(
                sa.and_(_states.c.status != SessionStatus.CLOSED.value, _ended(bundle)),
                sa.and_(
                    _states.c.status == SessionStatus.OPEN.value,
                    _states.c.seen_period <= seen_period(before),
                    _states.c.seen_at < before,
                ),
            ),
        )
        .order_by(_states.c.session_id)
        .limit(limit)
    )
    with store.reading() as connection:
        found = connection.execute(query).all()
    if not found:
        return 0
    session_ids = list(dict.fromkeys(session_id for session_id, _, _ in found))
    with store.transaction() as connection:
        session_locks.lock(connection, session_ids)
        for session_id, other, ended in found:
            status = SessionStatus.CLOSED if ended else SessionStatus.IDLE
            _close(connection, session_id, other, status)
        marks = [{"session_id": session_id, "month": None} for session_id in session_ids]
        store.upsert(connection, tables.rollup_marks, marks, keep=True)
    return len(session_ids)


def count(store: Store, bundle: str) -> dict[str, int]:
    """Number of open states of sessions that have ended under ``bundle``, by their bundle."""
    query = (
        sa.select(_states.c.bundle, sa.func.count())
        .where(
            _states.c.bundle != bundle,
            _states.c.status != SessionStatus.CLOSED.value,
            _ended(bundle),
        )
        .group_by(_states.c.bundle)
        .order_by(_states.c.bundle)
    )
    with store.reading() as connection:
        return dict(connection.execute(query).all())


def _ended(bundle: str) -> sa.ColumnElement[bool]:
    return (
        sa.exists()
        .where(
            _own.c.session_id == _states.c.session_id,
            _own.c.bundle == bundle,
            _own.c.status == SessionStatus.CLOSED.value,
        )
        .correlate(_states)
    )


def _others(bundle: str) -> sa.ScalarSelect[str]:
    known = tables.bundles
    return sa.select(known.c.bundle).where(known.c.bundle != bundle).scalar_subquery()


def _close(connection: Connection, session_id: str, bundle: str, status: SessionStatus) -> None:
    scores = tables.turn_scores
    later = scores.alias()
    copied = [
        sa.literal(Stage.FINAL.value) if column is scores.c.stage else column for column in scores.c
    ]
    unfinished = sa.select(*copied).where(
        scores.c.session_id == session_id,
        scores.c.bundle == bundle,
        scores.c.stage == Stage.PROVISIONAL.value,
        ~sa.exists()
        .where(
            later.c.session_id == scores.c.session_id,
            later.c.bundle == scores.c.bundle,
            later.c.seq == scores.c.seq,
            later.c.stage == Stage.FINAL.value,
        )
        .correlate(scores),
    )
    connection.execute(sa.insert(scores).from_select(list(scores.c.keys()), unfinished))
    for table in (tables.session_states, tables.session_scores):
        connection.execute(
            sa.update(table)
            .where(
                table.c.session_id == session_id,
                table.c.bundle == bundle,
                table.c.status != SessionStatus.CLOSED.value,
            )
            .values(status=status.value)
        )
