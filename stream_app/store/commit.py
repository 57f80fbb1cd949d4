"""Writes a batch: builds the rows first, then writes them in one transaction."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection, Table

from stream_app.core.batch import BatchResult, StoredTurn
from stream_app.core.ports import LogPosition, Message
from stream_app.store import outbox as outbox_codec
from stream_app.store import rows, tables, windows
from stream_app.store.connection import Database
from stream_app.store.privacy import Privacy
from stream_app.store.rows import Row
from stream_app.store.states import SessionStates


class Prepared(Struct, frozen=True):
    """The rows of a batch; ``tables``: each with whether existing rows are kept.

    ``slots``: where the turns of each session's window are stored. ``speakers``: new speakers.
    """

    now: datetime
    states: list[Row]
    slots: dict[str, windows.Slots]
    speakers: list[Row]
    tables: list[tuple[Table, list[Row], bool]]


class _Rollback(Exception):
    """Ends a dry run."""


def prepare(
    privacy: Privacy, now: datetime, result: BatchResult, observe_redaction: Callable[[float], None]
) -> Prepared:
    """Build the rows of a batch before the transaction begins, to keep it short."""
    sessions = result.sessions
    for versioned in sessions.values():
        versioned.seen_at = versioned.seen_at or now
    statuses = {score.session_id: score.status for score in result.session_scores}
    split = {session_id: windows.split_state(v) for session_id, v in sessions.items()}
    turns = [_turn_row(turn, privacy, now, observe_redaction) for turn in result.turns]
    speakers = [
        rows.speaker_row(turn, reads=stored.from_first_counsellor)
        for turn, stored in zip(turns, result.turns, strict=True)
        if _speaker(turn) not in sessions[turn["session_id"]].speakers
    ]
    return Prepared(
        now,
        [rows.state_row(v, statuses[key], split[key].state) for key, v in sessions.items()],
        {session_id: item.slots for session_id, item in split.items()},
        speakers,
        [
            (tables.window_turns, [row for item in split.values() for row in item.turns], False),
            (tables.sessions, [rows.session_row(v.state, now) for v in sessions.values()], False),
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
        ],
    )


def commit(
    database: Database,
    states: SessionStates,
    prepared: Prepared,
    result: BatchResult,
    messages: Sequence[Message],
    positions: Sequence[LogPosition],
) -> int | None:
    """Write a batch in one transaction; return the id of its outbox row, if any.

    The versions in ``result.sessions`` are incremented after the transaction.
    """
    position_rows = [rows.position_row(position, prepared.now) for position in positions]
    with database.transaction() as connection:
        outbox_id = _write(connection, database, states, prepared, messages)
        database.upsert(connection, tables.log_positions, position_rows, keep=False)
    for session_id, versioned in result.sessions.items():
        versioned.version += 1
        versioned.slots = prepared.slots[session_id]
    for row in prepared.speakers:
        result.sessions[row["session_id"]].speakers.add(_speaker(row))
    return outbox_id


def dry_run(
    database: Database, states: SessionStates, prepared: Prepared, messages: Sequence[Message]
) -> None:
    """Write a batch and roll it back."""
    with suppress(_Rollback), database.transaction() as connection:
        _write(connection, database, states, prepared, messages)
        raise _Rollback


def _write(
    connection: Connection,
    database: Database,
    states: SessionStates,
    prepared: Prepared,
    messages: Sequence[Message],
) -> int | None:
    states.write(connection, prepared.states)
    for table, values, keep in prepared.tables:
        database.upsert(connection, table, values, keep=keep)
    return _write_outbox(connection, messages, prepared.now)


def _turn_row(
    turn: StoredTurn, privacy: Privacy, now: datetime, observe_redaction: Callable[[float], None]
) -> Row:
    started = time.perf_counter()
    row = rows.turn_row(turn, privacy, now)
    observe_redaction(time.perf_counter() - started)
    return row


def _speaker(row: Row) -> tuple[str, str]:
    return row["speaker"], row["role"]


def _write_outbox(connection: Connection, messages: Sequence[Message], now: datetime) -> int | None:
    if not messages:
        return None
    row = {"created_at": now, "messages": outbox_codec.pack(list(messages))}
    inserted = connection.execute(sa.insert(tables.outbox).values(row))
    key = inserted.inserted_primary_key
    return int(key[0]) if key is not None else None
