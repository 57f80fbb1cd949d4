"""Which sessions are archived: the index of the archive, and the deletion of what was moved.

A session's facts are read from the archive's files only if ``archived_sessions`` names it. Its row
is written in the transaction that deletes the session's other rows, so that every session counts
once, whatever the files contain. Its speakers, its rows in the roll-ups and its consents stay:
roll-ups, dates of joining and the search by speaker need them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.contracts.scores import SessionStatus
from stream_app.errors import RapportError
from stream_app.store.database import tables
from stream_app.store.database.tables import archived_sessions, session_scores, sessions
from stream_app.store.keys import pseudonym_key
from stream_app.store.lifecycle import erasure
from stream_app.store.stream.repository import Store

FACTS: Final = ("fact_session", "fact_turn", "fact_alert", "fact_outcome")
"""Archived facts, each a folder. Ratings stay in the database, with the sessions they are about."""
FILE: Final = "part-0.parquet"
HIDDEN: Final = f".{FILE}."
"""Begins the names of unfinished files, which engines ignore."""
OWNER_FILE: Final = "rapport-archive.txt"
ARCHIVE_ID: Final = "archive"
_LOCK: Final = 0x7261_7061
"""Number of PostgreSQL's advisory lock."""
_KEPT: Final = (
    archived_sessions,
    tables.session_speakers,
    tables.rollup_sessions,
    tables.rollup_turns,
    tables.consents,
)
_SESSIONS_AT_A_TIME: Final = 500


class ArchiveError(RapportError):
    """The archive is missing, incomplete, or belongs to another database."""


def month_name(month: date) -> str:
    """The month as in the folders' names.

    >>> month_name(date(2026, 3, 1))
    '2026-03'
    """
    return f"{month:%Y-%m}"


def next_month(month: date) -> date:
    """The first day of the month after it.

    >>> next_month(date(2025, 12, 1))
    datetime.date(2026, 1, 1)
    """
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)


def file_of(folder: Path, fact: str, month: date) -> Path:
    """The file of a fact's month; the folder's name is Hive's way to write a partition."""
    return folder / fact / f"month={month_name(month)}" / FILE


@contextmanager
def changing(store: Store) -> Iterator[Connection]:
    """A transaction in which nobody else changes the archive; it sees one state of the database.

    On PostgreSQL a lock of its own comes first, so that the transaction's snapshot is younger than
    whatever the previous holder did. SQLite has one writer at a time.
    """
    if store.engine.dialect.name == "sqlite":
        with store.transaction() as connection:
            yield connection
        return
    with store.transaction() as guard:
        guard.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        with snapshot(store) as connection:
            # compiling a fact's query takes longer than what it saves in a month
            connection.exec_driver_sql("SET LOCAL jit = off")
            yield connection


@contextmanager
def snapshot(store: Store, **options: Any) -> Iterator[Connection]:
    """A transaction whose statements all see the same state."""
    if store.engine.dialect.name != "sqlite":
        options["isolation_level"] = "REPEATABLE READ"
    with store.transaction(**options) as connection:
        yield connection


def check_owner(store: Store, folder: Path, *, unfinished: bool = False) -> None:
    """Check that the folder is this database's archive.

    ``unfinished``: even if some files still have the pseudonyms of before a rotation of the key.

    Raises:
        ArchiveError: it is another one's, or its pseudonyms are not the database's.
    """
    table = tables.installation
    with store.reading() as connection:
        known = connection.scalar(sa.select(table.c.value).where(table.c.name == ARCHIVE_ID))
        fingerprint = _fingerprint(connection)
    file = folder / OWNER_FILE
    found = file.read_text("utf-8").strip() if file.exists() else None
    if found is not None and found != known:
        raise ArchiveError(f"{folder} is the archive of another database")
    if not unfinished and any(prepared(file, fingerprint).exists() for file in files(folder)):
        raise ArchiveError(
            "a rotation of the pseudonym key was interrupted: run `rapport db archive` or "
            "`rapport keys rotate-pseudonyms`"
        )


def files(folder: Path) -> list[Path]:
    """All files of the archive."""
    return sorted(file for fact in FACTS for file in (folder / fact).glob(f"month=*/{FILE}"))


def prepared(file: Path, fingerprint: str) -> Path:
    """The file that replaces this one as soon as the pseudonym key has this fingerprint."""
    return file.with_name(f"{HIDDEN}{fingerprint}")


def finish_rotation(connection: Connection, folder: Path) -> int:
    """Rename prepared files whose pseudonyms are now the database's; their number.

    Others, which interrupted runs left behind, are deleted.
    """
    fingerprint, renamed = _fingerprint(connection), 0
    for fact in FACTS:
        for found in sorted((folder / fact).glob(f"month=*/{HIDDEN}*")):
            file = found.with_name(FILE)
            if found == prepared(file, fingerprint) and file.exists():
                found.rename(file)
                renamed += 1
            else:
                found.unlink()
    return renamed


def _fingerprint(connection: Connection) -> str:
    """Digest of the keys of the database's pseudonyms; empty before there are any."""
    table = tables.installation
    query = sa.select(table.c.value).where(table.c.name == pseudonym_key.FINGERPRINT)
    return connection.scalar(query) or ""


def claim_folder(store: Store, folder: Path) -> None:
    """Make the folder this database's archive, unless it is another one's.

    Raises:
        ArchiveError: it is.
    """
    check_owner(store, folder, unfinished=True)
    table = tables.installation
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with store.transaction() as connection:
        row = {"name": ARCHIVE_ID, "value": str(uuid4())}
        store.upsert(connection, table, [row], keep=True)
        name = connection.scalar(sa.select(table.c.value).where(table.c.name == ARCHIVE_ID))
    (folder / OWNER_FILE).write_text(f"{name}\n", "utf-8")


def shown() -> sa.ColumnElement[bool]:
    """Condition on ``archived_sessions``: consent was not withdrawn after the move."""
    return ~sa.exists().where(
        sessions.c.session_id == archived_sessions.c.session_id, sessions.c.hidden
    )


def count(store: Store, session_ids: Sequence[str] | None = None) -> int:
    """Number of archived sessions, all or among these."""
    query = sa.select(sa.func.count()).select_from(archived_sessions)
    with store.reading() as connection:
        if session_ids is None:
            return int(connection.scalar(query) or 0)
        return sum(
            int(connection.scalar(query.where(archived_sessions.c.session_id.in_(some))) or 0)
            for some in _batches(session_ids)
        )


def months_to_move(connection: Connection, before: date) -> list[date]:
    """Months before the one of ``before`` that have sessions that may move."""
    start = sa.select(sa.func.min(session_scores.c.started_at)).where(_may_move())
    first = connection.scalar(start)
    found, month = [], None if first is None else date(first.year, first.month, 1)
    while month is not None and month < before:
        one = sa.select(session_scores.c.session_id).where(*_began_in(month), _may_move()).limit(1)
        if connection.scalar(one) is not None:
            found.append(month)
        month = next_month(month)
    return found


def add(connection: Connection, month: date, now: datetime) -> int:
    """Enter the sessions of a month that may move; their number."""
    score = session_scores.c
    chosen = (
        sa.select(
            score.session_id,
            sa.literal(month, sa.Date()),
            sessions.c.team,
            sa.func.min(score.started_at),
            sa.func.coalesce(sessions.c.stored_at, sa.func.max(score.last_activity_at)),
            sa.literal(now, tables.UtcDateTime()),
        )
        .join(sessions, sessions.c.session_id == score.session_id)
        .where(*_began_in(month), _may_move())
        .group_by(score.session_id, sessions.c.team, sessions.c.stored_at)
    )
    names = [column.name for column in archived_sessions.c]
    connection.execute(sa.insert(archived_sessions).from_select(names, chosen))
    entered = added(month, now).subquery()
    return int(connection.scalar(sa.select(sa.func.count()).select_from(entered)) or 0)


def added(month: date, now: datetime) -> sa.Select[tuple[str]]:
    """The sessions that ``add`` has just entered."""
    return sa.select(archived_sessions.c.session_id).where(
        archived_sessions.c.month == month, archived_sessions.c.archived_at == now
    )


def delete_moved(connection: Connection, moved: sa.Select[tuple[str]]) -> None:
    """Delete all rows of these sessions but those that stay."""
    alerts, deliveries = tables.alerts, tables.deliveries
    of_alerts = sa.select(alerts.c.alert_id).where(alerts.c.session_id.in_(moved))
    connection.execute(sa.delete(deliveries).where(deliveries.c.alert_id.in_(of_alerts)))
    keys, mutes = tables.session_keys, tables.mutes
    of_mutes = sa.select(mutes.c.mute_id).where(mutes.c.session_id.in_(moved))
    connection.execute(sa.delete(keys).where(keys.c.session_id.in_(of_mutes)))
    for table in erasure.SESSION_TABLES:
        if table not in _KEPT:
            connection.execute(sa.delete(table).where(table.c.session_id.in_(moved)))


def expire(store: Store, folder: Path, before: datetime) -> Iterator[int]:
    """Delete months whose last session expired, file by file; the sessions of each.

    A month with a session on legal hold stays.
    The files go first: until its rows are deleted too, an interrupted month is found again.
    """
    column = archived_sessions.c
    query = (
        sa.select(column.month)
        .outerjoin(tables.holds, tables.holds.c.session_id == column.session_id)
        .group_by(column.month)
        .having(
            sa.func.max(column.stored_at) < before,
            sa.func.count(tables.holds.c.session_id) == 0,
        )
        .order_by(column.month)
    )
    with store.reading() as connection:
        expired = list(connection.scalars(query))
    if expired:
        check_owner(store, folder, unfinished=True)
    for month in expired:
        with changing(store) as connection:
            finish_rotation(connection, folder)
            for fact in FACTS:
                remove(file_of(folder, fact, month))
            ids = list(
                connection.scalars(sa.select(column.session_id).where(column.month == month))
            )
            for some in _batches(ids):
                erasure.delete_sessions(connection, some)
        yield len(ids)


def remove(file: Path) -> None:
    """Delete a partition's file and its folder."""
    file.unlink(missing_ok=True)
    with suppress(OSError):  # there is no folder, or something else is in it
        file.parent.rmdir()


def _began_in(month: date) -> tuple[sa.ColumnElement[bool], ...]:
    """Conditions on ``session_scores``: sessions whose earliest turn is in this month (UTC)."""
    start, end = (
        sa.literal(datetime.fromisoformat(f"{day}T00:00:00+00:00"), tables.UtcDateTime())
        for day in (month, next_month(month))
    )
    other = session_scores.alias()
    earlier = sa.exists().where(
        other.c.session_id == session_scores.c.session_id, other.c.started_at < start
    )
    return session_scores.c.started_at >= start, session_scores.c.started_at < end, ~earlier


def _may_move() -> sa.ColumnElement[bool]:
    """Sessions that ended, are rolled up, have no text left, and were not judged or reviewed.

    Nor has a client filled in a questionnaire, is consent withdrawn, or a legal hold in force.
    """
    scores, turns, own = session_scores.alias(), tables.turns.alias(), sessions.alias()
    staying = (
        tables.questionnaires,
        tables.ratings,
        tables.disputes,
        tables.reviews,
        tables.sample_turns,
        tables.rollup_marks,
        tables.holds,
        archived_sessions,
    )
    return sa.and_(
        session_scores.c.started_at.is_not(None),
        ~_has(scores, scores.c.status == SessionStatus.OPEN.value),
        ~_has(turns, turns.c.text.is_not(None)),
        _has(own, ~own.c.withdrawn),
        *(~_has(table.alias()) for table in staying),
    )


def _has(table: sa.FromClause, *conditions: sa.ColumnElement[bool]) -> sa.Exists:
    return sa.exists().where(table.c.session_id == session_scores.c.session_id, *conditions)


def _batches(session_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(session_ids), _SESSIONS_AT_A_TIME):
        yield session_ids[first : first + _SESSIONS_AT_A_TIME]
