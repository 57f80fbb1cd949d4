"""Writes a batch: builds the rows first, then writes them in one transaction."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from enum import Enum
from typing import Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection, Table

from stream_app.contracts.scores import SessionStatus
from stream_app.core.session.batch import BatchResult, Left, Revised, StoredTurn
from stream_app.core.session.ports import LogPosition, Message
from stream_app.core.session.session_state import Versioned
from stream_app.errors import RowExists
from stream_app.sealing.envelope import seal
from stream_app.store.database import rows, tables
from stream_app.store.database.connection import Database
from stream_app.store.database.privacy import Privacy
from stream_app.store.database.rows import Row
from stream_app.store.keys.session_keys import SessionKeys, place, seal_optional
from stream_app.store.stream import left_scores, revisions, windows, withdrawal
from stream_app.store.stream import outbox as outbox_codec
from stream_app.store.stream.states import SessionStates
from stream_app.store.stream.stored_positions import StoredPositions

_INSERT_OUTBOX: Final = sa.insert(tables.outbox)
_OF_A_TURN: Final = (tables.turns, tables.turn_scores)
"""Tables with most rows: those of a turn that a session's state does not have yet are new, unless
the state was lost."""


class Write(Enum):
    """How rows are written: ``keep`` existing ones, ``replace`` them, or ``update`` known ones."""

    KEEP = "keep"
    REPLACE = "replace"
    UPDATE = "update"


class Prepared(Struct, frozen=True):
    """The encrypted rows of a batch, by table and how they are written.

    ``keys``: the data key of each session; ``new_keys``: rows of new ones. ``slots``: where the
    turns of each session's window are stored. ``speakers``: new speakers. ``left``: see
    ``core.batch``. ``ended``: sessions that have ended. ``not_to_ask``: sessions with a decision
    that does not permit a language model to read them. ``revised``: an edit or a deletion, with the
    columns of its turn.
    """

    now: datetime
    keys: dict[str, bytes]
    new_keys: list[Row]
    states: list[Row]
    slots: dict[str, windows.Slots]
    speakers: list[Row]
    left: list[Left]
    ended: list[str]
    not_to_ask: list[str]
    revised: tuple[Revised, Row | None] | None
    tables: list[tuple[Table, list[Row], Write]]


class _Rollback(Exception):
    """Ends a dry run."""


def prepare(
    privacy: Privacy,
    session_keys: SessionKeys,
    stored_keys: Mapping[str, bytes],
    now: datetime,
    result: BatchResult,
    observe_redaction: Callable[[float], None],
) -> Prepared:
    """Build the rows of a batch before the transaction begins, to keep it short.

    ``stored_keys``: keys of sessions whose state was not loaded with one.

    Raises:
        SealingError: there is no master key.
    """
    sessions = result.sessions
    for versioned in sessions.values():
        versioned.seen_at = versioned.seen_at or now
        if versioned.state.end_reason is not None:  # the state is stored, too
            versioned.state.end_reason = privacy.redacted(versioned.state.end_reason)
    statuses = {score.session_id: score.status for score in result.session_scores}
    keys = {name: v.key or stored_keys.get(name, b"") for name, v in sessions.items()}
    new_keys = []
    for session_id in [name for name, key in keys.items() if not key]:
        keys[session_id], row = session_keys.create(session_id, now)
        new_keys.append(row)
    over = [key for key, status in statuses.items() if status is not SessionStatus.OPEN]
    over += [record.session_id for record in result.consents if record.withdraws]
    # without a score of the session, nothing but its status changes (``Pipeline.flush_idle``)
    idle = dict.fromkeys(sessions.keys() - statuses.keys(), SessionStatus.IDLE)
    statuses |= idle
    split = {session_id: windows.split_state(v) for session_id, v in sessions.items()}
    turns = [_turn_row(turn, privacy, now, observe_redaction) for turn in result.turns]
    for turn in turns:
        where = place(tables.turns.c.text, turn["session_id"], turn["seq"])
        turn["text"] = seal_optional(keys[turn["session_id"]], turn["text"], where)
    speakers = [
        rows.speaker_row(turn, reads=stored.from_first_counsellor)
        for turn, stored in zip(turns, result.turns, strict=True)
        if _speaker(turn) not in sessions[turn["session_id"]].speakers
    ]
    return Prepared(
        now,
        keys,
        new_keys,
        [_state_row(v, statuses[name], split[name].state, keys) for name, v in sessions.items()],
        {session_id: item.slots for session_id, item in split.items()},
        speakers,
        result.left,
        [key for key, status in statuses.items() if status is SessionStatus.CLOSED],
        withdrawal.not_to_ask(result.consents),
        _revised(result.revised, privacy, keys),
        [
            (
                tables.window_turns,
                [_sealed_window(row, keys) for item in split.values() for row in item.turns],
                Write.REPLACE,
            ),
            (
                tables.window_turns,
                [_sealed_window(row, keys) for item in split.values() for row in item.reused],
                Write.UPDATE,
            ),
            *_by_session(
                tables.sessions,
                [_session_row(v, now, keys, privacy) for v in sessions.values()],
                sessions,
            ),
            (
                tables.consents,
                [rows.consent_row(c, privacy, now) for c in result.consents],
                Write.KEEP,
            ),
            (tables.turns, turns, Write.KEEP),
            (tables.session_speakers, speakers, Write.KEEP),
            (
                tables.turn_scores,
                [rows.turn_score_row(s) for s in result.turn_scores],
                Write.REPLACE,
            ),
            *_by_session(
                tables.session_scores,
                [rows.session_score_row(s) for s in result.session_scores],
                sessions,
            ),
            (tables.alerts, [rows.alert_row(alert) for alert in result.alerts], Write.KEEP),
            (tables.outcomes, [rows.outcome_row(o) for o in result.outcomes], Write.REPLACE),
            (
                tables.questionnaires,
                [rows.questionnaire_row(each) for each in result.questionnaires],
                Write.REPLACE,
            ),
            (
                tables.rollup_marks,
                [{"session_id": key, "month": None} for key in dict.fromkeys(over)],
                Write.KEEP,
            ),
        ],
    )


def _revised(
    revised: Revised | None, privacy: Privacy, keys: Mapping[str, bytes]
) -> tuple[Revised, Row | None] | None:
    """An edit or a deletion, and the columns of its turn."""
    if revised is None:
        return None
    return revised, revisions.new_text(revised, privacy, keys.get(revised.session_id, b""))


def _by_session(
    table: Table, values: list[Row], sessions: Mapping[str, Versioned]
) -> list[tuple[Table, list[Row], Write]]:
    """Rows of new sessions, and of stored ones, which have a row already."""
    new = [row for row in values if not sessions[row["session_id"]].version]
    stored = [row for row in values if sessions[row["session_id"]].version]
    return [(table, new, Write.REPLACE), (table, stored, Write.UPDATE)]


def commit(
    database: Database,
    states: SessionStates,
    session_keys: SessionKeys,
    stored_positions: StoredPositions,
    prepared: Prepared,
    result: BatchResult,
    messages: Sequence[Message],
    positions: Sequence[LogPosition],
    published: Sequence[int] = (),
) -> int | None:
    """Write a batch in one transaction; return the id of its outbox row, if any.

    The versions in ``result.sessions`` are incremented after the transaction.
    """

    def write(*, new: bool) -> int | None:
        with database.transaction() as connection:
            stored_positions.advance(connection, positions, prepared.now)
            outbox_id = _write(
                connection, database, states, session_keys, prepared, messages, new=new
            )
            if published:
                outbox_codec.delete(connection, published, database.engine.dialect.name)
        return outbox_id

    try:
        outbox_id = write(new=result.revised is None)
    except RowExists:
        outbox_id = write(new=False)
    for session_id, versioned in result.sessions.items():
        versioned.version += 1
        versioned.key = prepared.keys[session_id]
        versioned.slots = prepared.slots[session_id]
    for row in prepared.speakers:
        result.sessions[row["session_id"]].speakers.add(_speaker(row))
    return outbox_id


def dry_run(
    database: Database,
    states: SessionStates,
    session_keys: SessionKeys,
    prepared: Prepared,
    messages: Sequence[Message],
) -> None:
    """Write a batch and roll it back."""
    with suppress(_Rollback), database.transaction() as connection:
        _write(connection, database, states, session_keys, prepared, messages, new=False)
        raise _Rollback


def _write(
    connection: Connection,
    database: Database,
    states: SessionStates,
    session_keys: SessionKeys,
    prepared: Prepared,
    messages: Sequence[Message],
    *,
    new: bool,
) -> int | None:
    """Write the rows; ``new``: the database has no rows of these turns yet."""
    states.write(connection, prepared.states)
    session_keys.write(connection, prepared.new_keys)
    if prepared.revised is not None:
        kept = prepared.states[0]["bundle"] if prepared.states else None
        revisions.write(connection, database, *prepared.revised, prepared.now, kept)
    for left in prepared.left:  # before scores of a bundle with other content under its id
        left_scores.finish(connection, left.session_id, left.bundle)
    for table, values, write in prepared.tables:
        if write is Write.UPDATE:
            database.update(connection, table, values)
        elif new and table in _OF_A_TURN:
            database.insert(connection, table, values)
        else:
            database.upsert(connection, table, values, keep=write is Write.KEEP)
    left_scores.close(connection, prepared.ended)
    withdrawal.forget_proposals(connection, prepared.not_to_ask)
    return write_outbox(connection, messages, prepared.now)


def write_states(
    connection: Connection,
    database: Database,
    states: SessionStates,
    changed: Sequence[tuple[Versioned, SessionStatus]],
) -> None:
    """Replace states outside a batch; each has its key already.

    Raises:
        StaleState: another worker has updated one of the sessions.
    """
    for versioned, status in changed:
        split = windows.split_state(versioned)
        keys = {versioned.state.session_id: versioned.key}
        states.write(connection, [_state_row(versioned, status, split.state, keys)])
        turns = [_sealed_window(row, keys) for row in (*split.turns, *split.reused)]
        database.upsert(connection, tables.window_turns, turns, keep=False)


def _state_row(
    versioned: Versioned, status: SessionStatus, packed: bytes, keys: Mapping[str, bytes]
) -> Row:
    state = versioned.state
    where = place(tables.session_states.c.state, state.session_id, state.bundle)
    return rows.state_row(versioned, status, seal(keys[state.session_id], packed, where))


def _sealed_window(row: Row, keys: Mapping[str, bytes]) -> Row:
    identity = row["session_id"], row["bundle"], row["slot"]
    where = place(tables.window_turns.c.turn, *identity)
    return {**row, "turn": seal(keys[row["session_id"]], row["turn"], where)}


def _session_row(
    versioned: Versioned, now: datetime, keys: Mapping[str, bytes], privacy: Privacy
) -> Row:
    row = rows.session_row(versioned.state, now, hide_withdrawn=privacy.hide_withdrawn)
    session_id = row["session_id"]
    where = place(tables.sessions.c.end_reason, session_id)
    return {**row, "end_reason": seal_optional(keys[session_id], row["end_reason"], where)}


def _turn_row(
    turn: StoredTurn, privacy: Privacy, now: datetime, observe_redaction: Callable[[float], None]
) -> Row:
    started = time.perf_counter()
    row = rows.turn_row(turn, privacy, now)
    observe_redaction(time.perf_counter() - started)
    return row


def _speaker(row: Row) -> tuple[str, str]:
    return row["speaker"], row["role"]


def write_outbox(connection: Connection, messages: Sequence[Message], now: datetime) -> int | None:
    """Store messages to be published; return the id of their row, None without messages."""
    if not messages:
        return None
    row = {"created_at": now, "messages": outbox_codec.pack(list(messages))}
    inserted = connection.execute(_INSERT_OUTBOX, row)
    key = inserted.inserted_primary_key
    return int(key[0]) if key is not None else None
