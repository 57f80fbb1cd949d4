"""Moves finished months from the database to Parquet files.

A month's facts are written to a temporary file, synced, renamed and counted; then one transaction
enters the sessions in ``archived_sessions`` and deletes their rows. A process that is killed before
the commit leaves files whose rows nobody reads, because no session is entered; the next run writes
them again. After the commit nothing is left to do. ``sweep`` brings files in line with the
database: it removes rows of sessions that are not entered, which is also how erasure works.

A month can be archived in several runs: sessions that could not move earlier join the file.
"""

import os
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from itertools import chain
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection

from stream_app.analytics.archive import arrow_rows
from stream_app.analytics.rollups import rollups
from stream_app.analytics.views import schema
from stream_app.analytics.views.columns import View
from stream_app.store.database.tables import archived_sessions
from stream_app.store.lifecycle import archived
from stream_app.store.lifecycle.archived import FACTS, ArchiveError, file_of
from stream_app.store.stream.repository import Store

TEMPORARY: Final = f"{archived.HIDDEN}tmp"
_SESSION: Final = "session_id"


class Moved(Struct, frozen=True):
    """One month's move: its sessions, and rows by fact."""

    month: date
    sessions: int
    rows: dict[str, int]


class Swept(Struct, frozen=True):
    """The result of ``sweep``: removed rows, rewritten and deleted files."""

    rows: int = 0
    files: int = 0


def archive(store: Store, folder: Path, before: date, now: datetime) -> Iterator[Moved]:
    """Move all months that were over on ``before``, one transaction each.

    Raises:
        ArchiveError: the folder belongs to another database, or a file lacks rows.
        StoreError: the database failed, or a session changed meanwhile; run it again.
    """
    archived.claim_folder(store, folder)
    for _ in rollups.update(store):
        pass
    sweep(store, folder)
    with store.reading() as connection:
        months = archived.months_to_move(connection, before)
    for month in months:
        with archived.changing(store) as connection:
            earlier = _entered(connection, month)
            sessions = archived.add(connection, month, now)
            moved = archived.added(month, now)
            views = {view.name: view for view in schema.wanted(connection)}
            rows = {}
            for fact in FACTS:
                target = file_of(folder, fact, month)
                rows[fact] = _write(connection, target, views[fact], moved, earlier)
            _check_sessions(file_of(folder, "fact_session", month), _entered(connection, month))
            archived.delete_moved(connection, moved)
        yield Moved(month, sessions, rows)


def sweep(store: Store, folder: Path) -> Swept:
    """Remove rows of sessions that are not archived, and what interrupted runs left behind."""
    archived.check_owner(store, folder, unfinished=True)
    rows = files = 0
    with archived.changing(store) as connection:
        archived.finish_rotation(connection, folder)
        for fact in FACTS:
            for partition in sorted((folder / fact).glob("month=*")):
                (partition / TEMPORARY).unlink(missing_ok=True)
                file = partition / archived.FILE
                if file.exists() and (gone := _purge(connection, file)):
                    rows, files = rows + gone, files + 1
    return Swept(rows, files)


def _purge(connection: Connection, file: Path) -> int:
    """Rewrite a file without the rows of sessions that are not entered; the number of rows."""
    entered = _entered(connection, _month_of(file))
    with pq.ParquetFile(file) as source:
        total, kept = int(source.metadata.num_rows), _count(source, entered)
        if len(entered) and kept == total:
            return 0
        if len(entered):
            replace_file(file, source.schema_arrow, _rows(source, entered), kept)
    if not len(entered):
        archived.remove(file)
    return total - kept


def _write(
    connection: Connection, file: Path, view: View, moved: sa.Select[tuple[str]], earlier: pa.Array
) -> int:
    """Write a month's file: what it has of ``earlier`` sessions, and the rows that move.

    Returns the number of the latter.
    """
    condition = sa.column(_SESSION).in_(moved)
    coming = arrow_rows.count(connection, view, condition)
    rows = arrow_rows.read(connection, view, condition)
    wanted = arrow_rows.schema_of(view)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not file.exists():
        replace_file(file, wanted, rows, coming)
        return coming
    with pq.ParquetFile(file) as source:
        merged = pa.unify_schemas([source.schema_arrow, wanted])
        kept = _count(source, earlier)
        replace_file(file, merged, chain(_rows(source, earlier), rows), kept + coming)
    return coming


def _check_sessions(file: Path, entered: pa.Array) -> None:
    """Check that the file has every session of its month that is entered, and no other.

    Raises:
        ArchiveError: it does not.
    """
    with pq.ParquetFile(file) as written:
        found = pc.unique(written.read([_SESSION])[_SESSION])
    if len(found) != len(entered) or not pc.all(pc.is_in(found, value_set=entered)).as_py():
        raise ArchiveError(f"{file} has other sessions than it should: nothing was deleted")


def _entered(connection: Connection, month: date) -> pa.Array:
    """The ids of a month's archived sessions."""
    query = sa.select(archived_sessions.c.session_id).where(archived_sessions.c.month == month)
    return pa.array(connection.scalars(query).all(), pa.string())


def _count(source: pq.ParquetFile, sessions: pa.Array) -> int:
    """Number of a file's rows of these sessions."""
    column = source.read([_SESSION])[_SESSION]
    found = pc.sum(pc.is_in(column, value_set=sessions)).as_py()
    return 0 if found is None else int(found)


def _rows(source: pq.ParquetFile, sessions: pa.Array) -> Iterator[pa.RecordBatch]:
    """A file's rows of these sessions."""
    for batch in source.iter_batches(arrow_rows.ROWS_AT_A_TIME):
        yield batch.filter(pc.is_in(batch[_SESSION], value_set=sessions))


def _month_of(file: Path) -> date:
    return date.fromisoformat(f"{file.parent.name.removeprefix('month=')}-01")


def _aligned(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """Add the columns that a bundle lacks, as nulls."""
    if batch.schema.equals(wanted):
        return batch
    arrays = [
        batch[field.name] if field.name in batch.schema.names else pa.nulls(len(batch), field.type)
        for field in wanted
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def replace_file(
    file: Path, wanted: pa.Schema, batches: Iterable[pa.RecordBatch], expected: int
) -> None:
    """Write, sync, rename, sync the folder, and count what is there.

    Raises:
        ArchiveError: the file has another number of rows.
    """
    temporary = file.with_name(TEMPORARY)
    with pq.ParquetWriter(temporary, wanted, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(_aligned(batch, wanted))
    _sync(temporary)
    temporary.rename(file)
    _sync(file.parent)
    with pq.ParquetFile(file) as written:
        rows = written.read([_SESSION]).num_rows
    if rows != expected:
        raise ArchiveError(f"{file} has {rows} rows instead of {expected}: nothing was deleted")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
