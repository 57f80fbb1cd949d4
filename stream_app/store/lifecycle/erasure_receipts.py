"""Receipts of erasures, one for each session and act; they outlast the session.

A receipt is created in the erasing transaction and names the session until its dead letters and its
rows in the archive are removed, so that any worker can finish what a process left. A finished
receipt has the keyed digest of the session's id only.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec
import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection

from stream_app.store.database.tables import erasure_receipts
from stream_app.store.stream.repository import Store


class Removed(Struct, frozen=True):
    """Deleted rows by table, deleted reasons of mutes, and entries of the audit trail about it."""

    rows: dict[str, int]
    reasons: int
    audited: int


class Lines(Struct, frozen=True):
    """The result of an erasure: what was done and what could not be reached, without names."""

    done: list[str]
    not_reached: list[str]


class Unfinished(Struct, frozen=True):
    """A session whose dead letters and archived rows are not removed yet."""

    id: int
    session_id: str
    removed: Removed
    archived: bool


class Receipt(Struct, frozen=True):
    """A receipt of an erasure; ``lines`` is None until topics and archive were handled."""

    at: datetime
    removed: Removed
    lines: Lines | None


def add(
    connection: Connection,
    digest: str,
    session_id: str,
    removed: Removed,
    now: datetime,
    *,
    archived: bool,
) -> int:
    """Create an unfinished receipt; return its id. ``archived``: the archive's files have rows."""
    row = {
        "digest": digest,
        "at": now,
        "removed": msgspec.to_builtins(removed),
        "unfinished": session_id,
        "archived": archived,
    }
    inserted = connection.execute(sa.insert(erasure_receipts).values(row)).inserted_primary_key
    return int(inserted[0]) if inserted is not None else 0


def unfinished(
    store: Store, before: datetime | None = None, ids: Sequence[int] | None = None, limit: int = 100
) -> list[Unfinished]:
    """Unfinished receipts, oldest first, those without archived rows before others."""
    table = erasure_receipts
    query = (
        sa.select(table)
        .where(table.c.unfinished.is_not(None))
        .order_by(table.c.archived, table.c.at, table.c.id)
        .limit(limit)
    )
    if before is not None:
        query = query.where(table.c.at < before)
    if ids is not None:
        query = query.where(table.c.id.in_(ids))
    with store.reading() as connection:
        return [
            Unfinished(row.id, row.unfinished, _removed(row), row.archived)
            for row in connection.execute(query)
        ]


def finish(store: Store, receipt_id: int, lines: Lines) -> None:
    """Store the lines, and forget the session's id; a finished receipt stays as it is."""
    table = erasure_receipts
    this = (table.c.id == receipt_id, table.c.unfinished.is_not(None))
    values = {"unfinished": None, "receipt": msgspec.to_builtins(lines)}
    with store.transaction() as connection:
        connection.execute(sa.update(table).where(*this).values(values))


def amend(store: Store, receipt_id: int, lines: Lines) -> None:
    """Replace the lines of a finished receipt."""
    table = erasure_receipts
    this = (table.c.id == receipt_id, table.c.unfinished.is_(None))
    with store.transaction() as connection:
        connection.execute(sa.update(table).where(*this).values(receipt=msgspec.to_builtins(lines)))


def note_swept(store: Store, before: datetime) -> None:
    """Note that the archive's files have no rows of sessions erased before this time."""
    table = erasure_receipts
    waiting = (table.c.archived, table.c.at < before, table.c.unfinished.is_not(None))
    with store.transaction() as connection:
        connection.execute(sa.update(table).where(*waiting).values(archived=False))


def of_session(store: Store, session_id: str) -> list[Receipt]:
    """The receipts of a session, oldest first."""
    table = erasure_receipts
    digest = store.privacy.pseudonym(session_id)
    query = sa.select(table).where(table.c.digest == digest).order_by(table.c.id)
    with store.reading() as connection:
        return [
            Receipt(
                row.at,
                _removed(row),
                None if row.receipt is None else msgspec.convert(row.receipt, Lines),
            )
            for row in connection.execute(query)
        ]


def oldest_unfinished(store: Store) -> datetime | None:
    """When the oldest unfinished erasure began."""
    table = erasure_receipts
    query = sa.select(sa.func.min(table.c.at)).where(table.c.unfinished.is_not(None))
    with store.reading() as connection:
        found: datetime | None = connection.scalar(query)
    return found


def _removed(row: sa.Row[tuple[object, ...]]) -> Removed:
    return msgspec.convert(row.removed, Removed)
