"""Storage, message and log sizes per turn: ``python -m benchmarks.sizes``.

Real messages of real lengths go through the worker's processor with the shipped bundle into
PostgreSQL, whose statistics are then read: rows by table, their size with indexes, and the
write-ahead log. The first half of each session fills windows and tables and is not counted. Sizes
hardly depend on the machine, so they are stored, like ``lengths.json``, and shown in
docs/scale.md.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import psycopg
import sqlalchemy as sa
from msgspec import Struct
from pydantic import SecretStr

from benchmarks.errors import Unavailable
from benchmarks.load import workload
from benchmarks.load.keys import keys
from benchmarks.load.workload import Turn
from benchmarks.report import markdown
from benchmarks.storage import size_parts
from benchmarks.storage.size_parts import LogPart
from servers import postgres
from stream_app import bootstrap
from stream_app.analytics.archive import archive
from stream_app.core.pipeline.pipeline import Received, Source, receive
from stream_app.errors import RapportError
from stream_app.inference.bundles import bundle as bundles
from stream_app.settings import Settings
from stream_app.store.database import tables
from stream_app.store.lifecycle.archived import next_month
from stream_app.store.stream import schema
from stream_app.store.stream.repository import Store
from stream_app.worker.batches.commits import Committed
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.batches.outgoing import OutputTopics
from stream_app.worker.batches.processor import BatchProcessor, BatchSettings

FILE: Final = Path(__file__).with_name("sizes.json")
DOCUMENT: Final = Path(__file__).parents[1] / "docs" / "scale.md"
SESSIONS: Final = 256
TURNS: Final = 24
"""Turns per session."""
TOPICS: Final = OutputTopics("turn-scores", "session-scores", "alerts")
WITHOUT_CHECKPOINTS: Final = {"checkpoint_timeout": "1d", "max_wal_size": "16GB"}
"""The first change of a page after a checkpoint would log the whole page."""
APART: Final = timedelta(seconds=10)
"""Seconds between two turns of a session."""


class Topic(Struct, frozen=True):
    """Messages per turn, and bytes per message: key and value, uncompressed."""

    messages: float
    bytes: float


class Table(Struct, frozen=True):
    """Row writes per turn, and bytes per row including indexes, in a table without bloat.

    ``kept``: net new rows per turn (session rows are updated in place). 0 bytes: the table is empty
    again.
    """

    inserted: float
    updated: float
    deleted: float
    kept: float
    bytes: float


class Sizes(Struct, frozen=True):
    """``log``: bytes of write-ahead log per turn, without the full-page writes after a checkpoint.

    ``state``: bytes of an open session's state without its window's turns, of which it has
    ``held``, each of ``turn`` bytes.
    ``archived``: bytes of files per turn after ``rapport db archive``, which keeps no text and no
    provisional scores.
    """

    bundle: str
    postgresql: str
    turns: int
    tokens: float
    turn_in: float
    topics: dict[str, Topic]
    tables: dict[str, Table]
    log: float
    state: float
    held: float
    turn: float
    archived: float | None = None


def load() -> Sizes | None:
    """Load the stored sizes, if any."""
    return msgspec.json.decode(FILE.read_bytes(), type=Sizes) if FILE.exists() else None


def shown(found: Sizes) -> str:
    """The table of a turn's bytes."""
    topics = [
        [
            f"topic `{name}`",
            f"{topic.messages:.2f} messages",
            f"{topic.messages * topic.bytes:,.0f}",
        ]
        for name, topic in found.topics.items()
    ]
    rows = [
        [f"table `{name}`", f"{table.kept:.2f} rows", f"{table.kept * table.bytes:,.0f}"]
        for name, table in found.tables.items()
        if table.kept > 0
    ]
    kept = sum(table.kept * table.bytes for table in found.tables.values() if table.kept > 0)
    total = [
        ["all rows that stay, with indexes", "", f"{kept:,.0f}"],
        ["write-ahead log, without full pages", "", f"{found.log:,.0f}"],
        ["archive, without text", "", f"{found.archived or 0.0:,.0f}"],
    ]
    event = [["event on `turns`", "1.00 messages", f"{found.turn_in:,.0f}"]]
    table = markdown.table(["of a turn", "number", "bytes"], [*event, *topics, *rows, *total])
    about = f"{found.turns:,} turns of {found.tokens:.1f} tokens, {found.bundle}, PostgreSQL"
    return f"{about} {found.postgresql}.\n\n{table}"


def document(text: str, found: Sizes) -> str:
    """The text of docs/scale.md with the table of ``found``."""
    return markdown.replace(text, "sizes", shown(found))


def measure(
    bundle: Path,
    sessions: int = SESSIONS,
    each: int = TURNS,
    show_parts: Callable[[str], None] | None = None,
) -> Sizes:
    """Measure on a dedicated server; ``show_parts`` gets the break-down (``size_parts``).

    Raises:
        Unavailable: PostgreSQL's server is not installed.
    """
    turns = said(sessions, each)
    half = len(turns) // 2
    with _database() as url:
        settings = Settings().model_copy(
            update={
                "bundle": bundle,
                "database_url": SecretStr(url),
                **keys(),
            }
        )
        store = bootstrap.new_store(settings)
        schema.upgrade(store)
        store.close()
        batches = _records(turns)
        _run(settings, batches[: len(batches) // 2])
        counted = sum(len(batch) for batch in batches[len(batches) // 2 :])
        before = _counted(url)
        committed = _run(settings, batches[len(batches) // 2 :])
        after = _counted(url)
        log = _log_parts(url, before, counted) if show_parts else []
        rows = _row_sizes(url)
        if show_parts:
            show_parts(_parts(url, log, rows))
        state, states = _lengths(url, "session_states", "state")
        turn, held = _lengths(url, "window_turns", "turn")
        version = str(_value(url, "SHOW server_version")).split()[0]
        archived = _archived(settings) / len(turns)
    found = bundles.load(bundle)
    messages = [message for item in committed for message in item.messages]
    return Sizes(
        bundle=found.manifest.bundle_id,
        postgresql=version,
        turns=counted,
        tokens=sum(turn.tokens for turn in turns[half:]) / (len(turns) - half),
        turn_in=sum(len(r.raw) + len(_key(r)) for batch in batches for r in batch) / len(turns),
        topics={
            topic: Topic(len(sizes) / counted, sum(sizes) / max(1, len(sizes)))
            for topic in msgspec.structs.asdict(TOPICS).values()
            for sizes in [[len(m.key) + len(m.value or b"") for m in messages if m.topic == topic]]
        },
        tables={
            name: Table(*_each(before.rows[name], after.rows[name], counted), bytes=size)
            for name, size in sorted(rows.items())
            if after.rows[name][:3] != before.rows[name][:3]
        },
        log=(after.log - before.log) / counted,
        state=state,
        held=held / states,
        turn=turn,
        archived=archived,
    )


def _each(before: "Rows", after: "Rows", turns: int) -> tuple[float, float, float, float]:
    inserted, updated, deleted, kept = ((b - a) / turns for a, b in zip(before, after, strict=True))
    return inserted, updated, deleted, kept


def said(sessions: int, each: int) -> list[Turn]:
    """Turns of real lengths, interleaved: each session says one before any says its next."""
    turns = workload.turns(sessions * each, sessions=sessions)
    found = []
    for place, turn in enumerate(turns):
        seq, session = divmod(place, sessions)
        role = workload.ROLES[seq % 2]
        found.append(msgspec.structs.replace(turn, session=session, seq=seq, role=role))
    return found


def _records(turns: list[Turn]) -> list[list[Received]]:
    """Records in the worker's batches."""
    start = datetime.now(UTC) - APART * (1 + max(turn.seq for turn in turns))
    records = []
    for offset, turn in enumerate(turns):
        at = start + APART * turn.seq
        value = workload.event(turn, "size", at.timestamp())
        records.append(receive(Source("size", 0, offset), value, {}, at))
    size = Settings().batch_max
    return [records[i : i + size] for i in range(0, len(records), size)]


def _key(record: Received) -> bytes:
    return str(msgspec.json.decode(record.raw)["session_id"]).encode()


def _run(settings: Settings, batches: list[list[Received]]) -> list[Committed]:
    """Run a worker's processor over the batches; close its connections to flush statistics."""
    with _processor(settings) as (processor, _):
        done = []
        for batch in batches:
            done.append(processor.handle(processor.prepare(batch)))
            processor.outbox.mark_published(done[-1])
        return done


@contextmanager
def _processor(settings: Settings) -> Iterator[tuple[BatchProcessor, Store]]:
    scorer = bootstrap.scorer(settings)
    store = bootstrap.prepared_store(settings, scorer)
    try:
        yield (
            BatchProcessor(
                bootstrap.pipeline(settings, scorer),
                store,
                BatchSettings(TOPICS, 0.0),
                WorkerMetrics(),
            ),
            store,
        )
    finally:
        store.close()


def _archived(settings: Settings) -> int:
    """End and archive all sessions; returns the bytes of the files."""
    later = datetime.now(UTC) + timedelta(days=1)
    with _processor(settings) as (processor, store), TemporaryDirectory() as name:
        while processor.due.flush_idle(later, [0]) is not None:
            pass
        with store.transaction() as connection:  # retention has deleted the text by then
            connection.execute(sa.update(tables.turns).values(text=None))
        folder = Path(name)
        for _ in archive.archive(store, folder, next_month(later.date().replace(day=1)), later):
            pass
        return sum(file.stat().st_size for file in folder.rglob("*.parquet"))


Rows = tuple[int, int, int, int]
"""Inserted, updated, deleted, live rows."""


class _Count(Struct, frozen=True):
    """Row counts by table; bytes of log so far."""

    rows: dict[str, Rows]
    log: int
    position: str


def _counted(url: str) -> _Count:
    with psycopg.connect(url, autocommit=True) as connection:
        log = connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")
        names = [
            name
            for (name,) in connection.execute("SELECT relname FROM pg_stat_user_tables").fetchall()
        ]
        written = connection.execute(
            "SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables"
        ).fetchall()
        live = {name: _rows(connection, name) for name in names}
        return _Count(
            {name: (*counts, live[name]) for name, *counts in written},
            int((log.fetchone() or [0])[0]),
            size_parts.log_position(connection),
        )


def _log_parts(url: str, since: _Count, turns: int) -> list[LogPart]:
    with psycopg.connect(url, autocommit=True) as connection:
        return size_parts.log_parts(connection, since.position, turns)


def _parts(url: str, log: list[LogPart], rows: dict[str, float]) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        tables = sorted(name for name, size in rows.items() if size)
        return size_parts.shown(log, size_parts.table_parts(connection, tables))


def _rows(connection: "psycopg.Connection[Any]", table: str) -> int:
    found = connection.execute(
        psycopg.sql.SQL("SELECT count(*) FROM {}").format(psycopg.sql.Identifier(table))
    )
    return int((found.fetchone() or [0])[0])


def _row_sizes(url: str) -> dict[str, float]:
    """Bytes per row including indexes, by table, after VACUUM FULL; 0 without rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM FULL")
        sizes = connection.execute(
            "SELECT relname, pg_total_relation_size(relid) FROM pg_stat_user_tables"
        ).fetchall()
        rows = {name: _rows(connection, name) for name, _ in sizes}
        return {name: size / rows[name] if rows[name] else 0.0 for name, size in sizes}


def _lengths(url: str, table: str, column: str) -> tuple[float, int]:
    """Mean length of a column in bytes, and the number of rows."""
    query = psycopg.sql.SQL("SELECT avg(octet_length({})), count(*) FROM {}").format(
        psycopg.sql.Identifier(column), psycopg.sql.Identifier(table)
    )
    with psycopg.connect(url) as connection:
        mean, count = connection.execute(query).fetchone() or (0, 0)
        return float(mean or 0), int(count)


def _value(url: str, query: str) -> Any:
    with psycopg.connect(url) as connection:
        return (connection.execute(query).fetchone() or [0])[0]


@contextmanager
def _database() -> Iterator[str]:
    binaries = postgres.binaries()
    if binaries is None:
        raise Unavailable("PostgreSQL's server (initdb, postgres) is not installed")
    server = postgres.Server(binaries, WITHOUT_CHECKPOINTS)
    try:
        yield server.new_database()
    finally:
        server.remove()


def main() -> None:
    """Rewrite the file, and the table in docs/scale.md."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bundle", type=Path, default=bundles.DEFAULT_BUNDLE)
    parser.add_argument(
        "--parts", action="store_true", help="print columns, indexes and log records; write no file"
    )
    options = parser.parse_args()
    try:
        found = measure(options.bundle, show_parts=print if options.parts else None)
    except RapportError as problem:
        raise SystemExit(f"error: {problem}") from problem
    if options.parts:
        print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
        return
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    DOCUMENT.write_text(document(DOCUMENT.read_text("utf-8"), found), "utf-8")
    print(shown(found))


if __name__ == "__main__":
    main()
