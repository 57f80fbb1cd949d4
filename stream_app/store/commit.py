"""Writes a batch: the rows are made first, then one transaction writes all of them."""

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from stream_app.core.batch import BatchResult
from stream_app.core.ports import Message
from stream_app.store import outbox as outbox_codec
from stream_app.store import rows, tables, windows
from stream_app.store.connection import Database
from stream_app.store.privacy import Privacy
from stream_app.store.rows import Row
from stream_app.store.states import SessionStates


def commit(
    database: Database,
    states: SessionStates,
    privacy: Privacy,
    now: datetime,
    result: BatchResult,
    messages: Sequence[Message],
) -> int | None:
    """Write a batch in one transaction; returns the id of its outbox row, if any.

    The versions in ``result.sessions`` move on when the transaction is through.
    """
    statuses = {score.session_id: score.status for score in result.session_scores}
    sessions = result.sessions
    split = {session_id: windows.split_state(v) for session_id, v in sessions.items()}
    replaced = [rows.state_row(v, statuses[key], split[key].state) for key, v in sessions.items()]
    turns = [rows.turn_row(turn, privacy, now) for turn in result.turns]
    speakers = [
        rows.speaker_row(turn)
        for turn in turns
        if _speaker(turn) not in sessions[turn["session_id"]].speakers
    ]
    written: list[tuple[Table, list[Row], bool]] = [
        (tables.window_turns, [row for item in split.values() for row in item.turns], False),
        (tables.sessions, [rows.session_row(v.state) for v in sessions.values()], False),
        (tables.turns, turns, True),
        (tables.session_speakers, speakers, True),
        (tables.turn_scores, [rows.turn_score_row(s) for s in result.turn_scores], False),
        (
            tables.session_scores,
            [rows.session_score_row(s) for s in result.session_scores],
            False,
        ),
        (tables.alerts, [rows.alert_row(alert) for alert in result.alerts], True),
        (tables.outcomes, [rows.outcome_row(o) for o in result.outcomes], False),
    ]
    with database.transaction() as connection:
        states.write(connection, replaced)
        for table, values, keep in written:
            database.upsert(connection, table, values, keep=keep)
        outbox_id = _write_outbox(connection, messages, now)
    for session_id, versioned in sessions.items():
        versioned.version += 1
        versioned.slots = split[session_id].slots
    for row in speakers:
        sessions[row["session_id"]].speakers.add(_speaker(row))
    return outbox_id


def _speaker(row: Row) -> tuple[str, str]:
    return row["speaker"], row["role"]


def _write_outbox(connection: Connection, messages: Sequence[Message], now: datetime) -> int | None:
    if not messages:
        return None
    row = {"created_at": now, "messages": outbox_codec.pack(list(messages))}
    inserted = connection.execute(sa.insert(tables.outbox).values(row))
    key = inserted.inserted_primary_key
    return int(key[0]) if key is not None else None
