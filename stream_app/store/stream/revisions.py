"""Writes an edit or a deletion of a turn, in the transaction of its batch.

A deleted turn is erased: its text, its vectors in the window, its scores, and what people wrote
about it. What is left are alerts that it raised, without text, and an entry of the audit trail. The
window of its session is written as a whole (``core.pipeline``), and states that other bundles have
left are deleted, because they hold the turn too.
"""

from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.core.session.batch import Revised
from stream_app.plain_text.copies import spoken
from stream_app.store.database import audit_chain, audit_subjects, tables
from stream_app.store.database.connection import Database
from stream_app.store.database.privacy import Privacy
from stream_app.store.keys.session_keys import place, seal_optional

OF_A_TURN: Final = (
    tables.turns,
    tables.turn_scores,
    tables.shadow_scores,
    tables.outcomes,
    tables.sample_turns,
    tables.ratings,
    tables.rating_comments,
    tables.disputes,
    tables.review_comments,
)
"""Tables with rows about one turn. An alert is about a session, and says when it was raised."""


def new_text(revised: Revised, privacy: Privacy, key: bytes) -> dict[str, Any] | None:
    """The columns of an edited turn: the redacted and encrypted text; None of a deleted turn."""
    if revised.text is None:
        return None
    text = privacy.redacted(revised.text)
    where = place(tables.turns.c.text, revised.session_id, revised.seq)
    return {
        "text": seal_optional(key, text, where),
        "chars": len(text),
        "words": len(spoken(revised.text).text.split()),
    }


def write(
    connection: Connection,
    database: Database,
    revised: Revised,
    columns: dict[str, Any] | None,
    now: datetime,
    kept: str | None,
) -> None:
    """Replace or erase the turn, and delete the scores that no longer hold.

    ``kept``: the bundle of the session's own state, None if it has none.
    """
    session_id, seq = revised.session_id, revised.seq
    _forget_windows(connection, session_id, kept)
    _delete_scores(connection, revised)
    if columns is not None:
        turns = tables.turns
        this = turns.c.session_id == session_id, turns.c.seq == seq
        connection.execute(sa.update(turns).where(*this).values(columns))
        return
    for table in OF_A_TURN:
        this = table.c.session_id == session_id, table.c.seq == seq
        connection.execute(sa.delete(table).where(*this))
    mark = {"session_id": session_id, "month": None}
    database.upsert(connection, tables.rollup_marks, [mark], keep=True)
    _audit(connection, database, revised, now)


def _forget_windows(connection: Connection, session_id: str, kept: str | None) -> None:
    """Delete the window's turns, which are written again, and states of other bundles."""
    windows, states = tables.window_turns, tables.session_states
    connection.execute(sa.delete(windows).where(windows.c.session_id == session_id))
    others = states.c.session_id == session_id, states.c.bundle != (kept or "")
    connection.execute(sa.delete(states).where(*others))


def _delete_scores(connection: Connection, revised: Revised) -> None:
    """Delete stale scores; those of other bundles are of the turn's earlier text."""
    scores, shadows = tables.turn_scores, tables.shadow_scores
    own = scores.c.session_id == revised.session_id, scores.c.bundle == revised.bundle
    for seq, stage in revised.stale:
        this = scores.c.seq == seq, scores.c.stage == stage.value
        connection.execute(sa.delete(scores).where(*own, *this))
    others = scores.c.session_id == revised.session_id, scores.c.seq == revised.seq
    connection.execute(sa.delete(scores).where(*others, scores.c.bundle != revised.bundle))
    seqs = {revised.seq, *(seq for seq, _ in revised.stale)}
    of_shadow = shadows.c.session_id == revised.session_id, shadows.c.seq.in_(seqs)
    connection.execute(sa.delete(shadows).where(*of_shadow))


def _audit(connection: Connection, database: Database, revised: Revised, now: datetime) -> None:
    """Say that the turn was erased, as for an erasure of sessions."""
    chain = audit_chain.locked(database, connection)
    kind, value = audit_subjects.SESSION, revised.session_id
    subject = audit_subjects.find_or_add(connection, kind, [value])[value]
    entry = {
        "at": now,
        "person": audit_chain.WORKER,
        "action": audit_chain.ERASE,
        "subject": subject,
        "detail": f"turn {revised.seq}, deleted by its sender",
    }
    chain.append([entry])
