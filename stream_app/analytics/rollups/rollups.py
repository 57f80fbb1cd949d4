"""Keeps the roll-ups up to date: sums over sessions by period, team, domain, cohort, counsellor.

Every ended session has a row with its measures (``rollup_sessions``). The sums are computed from
these rows, one reporting month at a time; so are those over turns (``rollup_turns`` by session,
``rollup_turn_days`` by day). A month is recomputed when one of its sessions ends,
changes, reopens or is erased, or when the recorded joining year of one of its counsellors changes.
The result therefore does not depend on the order of events and equals that of ``rebuild``.

Measures are integers (ten-thousandths): their sums do not depend on the order of addition.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.analytics.rollups import cells
from stream_app.analytics.views import rollup_source
from stream_app.contracts.events import Role
from stream_app.contracts.scores import SessionStatus
from stream_app.store.database import tables
from stream_app.store.database.tables import (
    TURN_SUMS,
    archived_sessions,
    rollup_cells,
    rollup_counsellors,
    rollup_marks,
    rollup_means,
    rollup_sessions,
    rollup_turn_days,
    rollup_turns,
    session_scores,
    session_speakers,
    sessions,
)
from stream_app.store.lifecycle import archived
from stream_app.store.stream.repository import Store

TASK: Final = "rollups"
INTERVAL: Final = timedelta(minutes=10)
LOCK: Final = "rollups_lock"
_OF_SESSIONS: Final = (rollup_turns, rollup_sessions)
REBUILD_FROM: Final = 50_000
"""Number of marks from which a rebuild is faster, as after a bulk import."""


def update(store: Store) -> Iterator[int]:
    """Apply the changes in transactions of bounded size; yield the number of marks of each."""
    while True:
        with store.transaction() as connection:
            _lock(connection, store)
            count = int(
                connection.scalar(sa.select(sa.func.count()).select_from(rollup_marks)) or 0
            )
            applied = _rebuild(connection) if count >= REBUILD_FROM else _apply(connection)
        if not applied:
            return
        yield applied


def rebuild(store: Store) -> int:
    """Recompute all roll-ups in one transaction; the number of sessions."""
    with store.transaction() as connection:
        _lock(connection, store)
        _rebuild(connection)
        query = sa.select(sa.func.count(sa.distinct(rollup_sessions.c.session_id)))
        return int(connection.scalar(query) or 0)


def _lock(connection: Connection, store: Store) -> None:
    """Serialise the computing processes; readers see the previous rows."""
    table = tables.installation
    store.upsert(connection, table, [{"name": LOCK, "value": ""}], keep=True)
    now = datetime.now(UTC).isoformat()
    connection.execute(sa.update(table).where(table.c.name == LOCK).values(value=now))
    if connection.dialect.name == "postgresql":  # compiling takes longer than each batch itself
        connection.exec_driver_sql("SET LOCAL jit = off")


def _rebuild(connection: Connection) -> int:
    marks = connection.execute(sa.delete(rollup_marks)).rowcount
    for table in (rollup_counsellors, rollup_cells, rollup_means, rollup_turn_days):
        connection.execute(sa.delete(table))
    for table in _OF_SESSIONS:
        connection.execute(sa.delete(table).where(table.c.session_id.not_in(_archived())))
    rollup_source.insert_all(connection)
    connection.execute(
        sa.insert(rollup_counsellors).from_select(["speaker", "joined"], _joined(None))
    )
    _analyze(connection)
    _compute(connection, connection.scalars(sa.select(rollup_sessions.c.month).distinct()).all())
    return marks


def _apply(connection: Connection) -> int:
    marks = connection.execute(
        sa.select(rollup_marks).order_by(rollup_marks.c.id).limit(rollup_source.SESSIONS_AT_A_TIME)
    ).all()
    changed = {mark.session_id for mark in marks if mark.session_id is not None}
    changed |= set(connection.scalars(_reopened()))
    due = {mark.month for mark in marks if mark.month is not None}
    if not changed and not due:
        return 0
    moved = _archived().where(archived_sessions.c.session_id.in_(sorted(changed)))
    changed -= set(connection.scalars(moved))
    lost = bool(due)
    if lost:
        _delete_erased(connection, due)
    ids = sorted(changed)
    due |= set(_months(connection, ids))
    for table in _OF_SESSIONS:
        connection.execute(sa.delete(table).where(table.c.session_id.in_(ids)))
    rollup_source.insert_some(connection, ids)
    due |= set(_months(connection, ids))
    due |= _update_joined(connection, None if lost else _counsellors(connection, ids))
    _compute(connection, due)
    connection.execute(sa.delete(rollup_marks).where(rollup_marks.c.id.in_([m.id for m in marks])))
    return max(len(marks), 1)


def _delete_erased(connection: Connection, months: Iterable[date]) -> None:
    """Delete the rows of sessions that were erased while an earlier update computed them."""
    for table in _OF_SESSIONS:
        known = sa.select(sessions.c.session_id).where(sessions.c.session_id == table.c.session_id)
        connection.execute(
            sa.delete(table).where(
                table.c.month.in_(sorted(months)),
                ~known.exists(),
                table.c.session_id.not_in(_archived()),
            )
        )


def _archived() -> sa.Select[tuple[str]]:
    """Archived sessions: their rows are final, even if later events begin the session again.

    Those whose consent was withdrawn later lose their rows.
    """
    return sa.select(archived_sessions.c.session_id).where(archived.shown())


def _reopened() -> sa.Select[tuple[str]]:
    """Sessions that had ended and were reopened."""
    return (
        sa.select(rollup_sessions.c.session_id)
        .join(
            session_scores,
            (session_scores.c.session_id == rollup_sessions.c.session_id)
            & (session_scores.c.bundle == rollup_sessions.c.bundle),
        )
        .where(
            session_scores.c.status == SessionStatus.OPEN.value,
            rollup_sessions.c.session_id.not_in(_archived()),
        )
        .distinct()
    )


def _months(connection: Connection, ids: Sequence[str]) -> Iterable[date]:
    query = sa.select(rollup_sessions.c.month).distinct()
    return connection.scalars(query.where(rollup_sessions.c.session_id.in_(ids)))


def _counsellors(connection: Connection, ids: Sequence[str]) -> list[str]:
    query = sa.select(session_speakers.c.speaker).where(
        session_speakers.c.session_id.in_(ids),
        session_speakers.c.role == Role.COUNSELLOR.value,
    )
    return list(connection.scalars(query.distinct()))


def _joined(speakers: Sequence[str] | None) -> sa.Select[tuple[str, date]]:
    """Counsellors with the date of their first session; None: all."""
    query = (
        sa.select(session_speakers.c.speaker, sa.func.min(rollup_sessions.c.day).label("joined"))
        .join(rollup_sessions, rollup_sessions.c.session_id == session_speakers.c.session_id)
        .where(session_speakers.c.role == Role.COUNSELLOR.value)
        .group_by(session_speakers.c.speaker)
    )
    return query if speakers is None else query.where(session_speakers.c.speaker.in_(speakers))


def _update_joined(connection: Connection, speakers: Sequence[str] | None) -> set[date]:
    """Store when counsellors joined; the months of those whose cohort changed."""
    known = sa.select(rollup_counsellors)
    forget = sa.delete(rollup_counsellors)
    if speakers is not None:
        known = known.where(rollup_counsellors.c.speaker.in_(speakers))
        forget = forget.where(rollup_counsellors.c.speaker.in_(speakers))
    before = {row.speaker: row.joined for row in connection.execute(known)}
    now = {row.speaker: row.joined for row in connection.execute(_joined(speakers))}
    if now == before:
        return set()
    connection.execute(forget)
    if now:
        rows = [{"speaker": speaker, "joined": joined} for speaker, joined in now.items()]
        connection.execute(sa.insert(rollup_counsellors), rows)
    moved = [
        who for who, joined in now.items() if who not in before or before[who].year != joined.year
    ]
    months = (
        sa.select(rollup_sessions.c.month)
        .join(session_speakers, session_speakers.c.session_id == rollup_sessions.c.session_id)
        .where(
            session_speakers.c.speaker.in_(moved),
            session_speakers.c.role == Role.COUNSELLOR.value,
        )
        .distinct()
    )
    return set(connection.scalars(months)) if moved else set()


def _compute(connection: Connection, months: Iterable[date]) -> None:
    for month in sorted(months):
        for table in (rollup_cells, rollup_means, rollup_turn_days):
            connection.execute(sa.delete(table).where(table.c.month == month))
        found = cells.of_month(connection, month)
        rows: list[dict[str, Any]] = [cell.row for cell in found]
        means = [row for cell in found for row in cell.means]
        if rows:
            connection.execute(sa.insert(rollup_cells), rows)
        if means:
            connection.execute(sa.insert(rollup_means), means)
        _add_turns(connection, month)


def _add_turns(connection: Connection, month: date) -> None:
    """Sum a month's turns by day and all that its sessions are grouped by."""
    of_day, of_session = rollup_turn_days.c, rollup_turns.c
    grouped = [of_session[key.name] for key in rollup_turn_days.primary_key]
    names = [*(key.name for key in grouped), "month", "sessions", *TURN_SUMS]
    sums = [sa.func.sum(of_session[name]) for name in TURN_SUMS]
    query = (
        sa.select(*grouped, of_session.month, sa.func.count(), *sums)
        .where(of_session.month == month)
        .group_by(*grouped, of_session.month)
    )
    connection.execute(sa.insert(rollup_turn_days).from_select([of_day[n] for n in names], query))


def _analyze(connection: Connection) -> None:
    """Let the planner know the tables that were just filled."""
    for table in (*_OF_SESSIONS, rollup_counsellors):
        connection.exec_driver_sql(f"ANALYZE {table.name}")
