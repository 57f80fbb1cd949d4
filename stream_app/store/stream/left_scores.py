"""Ends what a bundle has scored of a session and will not continue."""

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.contracts.scores import SessionStatus, Stage
from stream_app.store.database import tables

_session_scores: Final = tables.session_scores


def finish(
    connection: Connection, session_id: str, bundle: str, status: SessionStatus = SessionStatus.IDLE
) -> None:
    """End a session under a bundle; its provisional scores become the final ones.

    Scores with following turns would need the bundle's model, which need not be installed any more.
    """
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
    own = _session_scores.c.session_id == session_id, _session_scores.c.bundle == bundle
    _set_status(connection, status, *own)


def close(connection: Connection, session_ids: Sequence[str]) -> None:
    """Close sessions that have ended under every bundle that has scored them."""
    if session_ids:
        of_them = _session_scores.c.session_id.in_(session_ids)
        _set_status(connection, SessionStatus.CLOSED, of_them)


def _set_status(
    connection: Connection, status: SessionStatus, *which: sa.ColumnElement[bool]
) -> None:
    still_open = _session_scores.c.status != SessionStatus.CLOSED.value
    update = sa.update(_session_scores).where(*which, still_open)
    connection.execute(update.values(status=status.value))
