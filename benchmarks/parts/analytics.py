"""Time of dashboard queries by size of the platform: PostgreSQL, and DuckDB over the archive."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import duckdb
import sqlalchemy as sa
from msgspec import Struct

from benchmarks import platform
from benchmarks.errors import Unavailable
from benchmarks.load.processes import REPOSITORY
from benchmarks.load.rounds import median
from benchmarks.options import Options
from benchmarks.report import markdown
from benchmarks.storage import archive_copies, archive_views, dashboards
from benchmarks.storage.dashboards import Query
from servers import postgres
from stream_app.analytics.archive import archive
from stream_app.analytics.rollups import rollups
from stream_app.analytics.views import schema
from stream_app.inference.bundles import bundle as bundles
from stream_app.sealing.envelope import new_key
from stream_app.sealing.sources import KeySource, as_text
from stream_app.store.lifecycle import archived
from stream_app.store.stream.repository import Store, open_store

NAME: Final = "analytics"
TITLE: Final = "Dashboard queries by size"
SIZES: Final = (10_000, 100_000, 1_000_000)
LARGEST: Final = 10_000_000
ARCHIVED_WHOLE: Final = 1_000_000
"""Number of turns above which one month is archived and the others are copies of its files."""
AIM: Final = 1.0
"""Seconds."""
SLOW: Final = 20.0
"""A query that took so many seconds is not repeated."""
SERVER: Final = {
    "shared_buffers": "1GB",
    "work_mem": "64MB",
    "maintenance_work_mem": "256MB",
    "max_wal_size": "8GB",
    "max_parallel_workers_per_gather": "2",
}
EXAMPLES: Final = "docs/analytics.md"
READ_ROLE: Final = "rapport_reader"
_EVERY_TEAM: Final = ", ".join(f"'team {number}'" for number in range(platform.TEAMS))
VARIABLES: Final = {
    "live-supervision": {"team": _EVERY_TEAM},
    "longitudinal": {"team": "'all'", "measure": "'empathy_index'"},
}


class Size(Struct):
    """A platform; times in seconds, sizes in bytes. ``moved``: archived turns; 0: all."""

    turns: int
    sessions: int
    written: float
    rolled_up: float
    archived: float
    database: int
    files: int
    moved: int = 0


class Timed(Struct):
    """A query's times by size, then by round; an empty list: it does not run there."""

    source: str
    title: str
    seconds: list[list[float]]


class Result(Struct):
    """Both engines use at most ``cores`` cores."""

    cores: int
    sizes: list[Size]
    postgresql: list[Timed]
    duckdb: list[Timed]


def measure(options: Options) -> Result:
    """Each size in a new database, which is dropped before the next.

    Raises:
        Unavailable: PostgreSQL's server is not installed.
    """
    binaries = postgres.binaries()
    if binaries is None:
        raise Unavailable("PostgreSQL's server (initdb, postgres) is not installed")
    found = Result(options.cores, [], [], [])
    server = postgres.Server(binaries, SERVER)
    try:
        for turns in options.turns or options.size(SIZES, (2_000,)):
            with _new_store(server) as store, TemporaryDirectory(prefix="rapport-archive-") as to:
                _measure_size(options, store, Path(to), turns, found)
    finally:
        server.remove()
    return found


@contextmanager
def _new_store(server: postgres.Server) -> Iterator[Store]:
    url = server.new_database()
    key = KeySource("KEY", as_text(new_key()))
    store = open_store(url, master=key, pseudonym=key)
    try:
        schema.upgrade(store)
        yield store
    finally:
        store.close()
        server.drop(url)


def _measure_size(options: Options, store: Store, folder: Path, turns: int, found: Result) -> None:
    manifest = bundles.load(options.bundle).manifest
    sessions, written = _timed(lambda: platform.write(store, manifest, turns, options.say))
    schema.create_views(store)
    _, rolled_up = _timed(lambda: rollups.rebuild(store))
    options.say(f"{turns:,} turns: written in {written:.0f} s, rolled up in {rolled_up:.0f} s")
    queries = all_queries()
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM ANALYZE")
        size = connection.scalar(sa.text("SELECT pg_database_size(current_database())"))
        for query in queries:
            _add(
                found.postgresql,
                query,
                _rounds(options, lambda sql: connection.exec_driver_sql(sql).all(), query),
            )
    rows, moved = _timed(lambda: _move(store, folder, whole=turns <= ARCHIVED_WHOLE))
    options.say(f"{rows:,} turns archived in {moved:.0f} s")
    with opened(folder, options.cores) as connection_to_files:
        for query in queries:
            if any(view in query.sql for view in archive_views.VIEWS):
                _add(
                    found.duckdb,
                    query,
                    _rounds(options, lambda sql: connection_to_files.sql(sql).fetchall(), query),
                )
    files = sum(file.stat().st_size for file in folder.rglob("*.parquet"))
    found.sizes.append(
        Size(turns, sessions, written, rolled_up, moved, int(size or 0), files, rows)
    )


def all_queries() -> list[Query]:
    """Return the dashboards' queries and the examples of the documentation."""
    found = dashboards.queries(platform.END, VARIABLES)
    shown = dashboards.examples(REPOSITORY / EXAMPLES)
    return [*found, *(Query(EXAMPLES, "mean level by months since joining", sql) for sql in shown)]


@contextmanager
def opened(folder: Path, cores: int) -> Iterator[Any]:
    """DuckDB with the archive's facts, and the dimensions that the queries join."""
    connection = duckdb.connect(config={"threads": cores, "autoinstall_known_extensions": "false"})
    connection.execute("SET TimeZone = 'UTC'")
    for statement in archive_views.statements(folder):
        connection.execute(statement)
    connection.execute(
        "CREATE TABLE dim_date AS SELECT CAST(day AS date) AS date, year(day) AS year, "
        "month(day) AS month, CAST(date_trunc('week', day) AS date) AS monday "
        "FROM generate_series(DATE '2020-01-01', DATE '2030-01-01', "
        "INTERVAL 1 DAY) AS days(day)"
    )
    try:
        yield connection
    finally:
        connection.close()


def _move(store: Store, folder: Path, *, whole: bool) -> int:
    """Archive the platform, or its first month and copies of it; the number of moved turns."""
    first = (platform.END - timedelta(days=platform.DAYS)).date()
    before = date(2100, 1, 1) if whole else archived.next_month(first)
    now = datetime.now(UTC)
    rows = sum(moved.rows["fact_turn"] for moved in archive.archive(store, folder, before, now))
    if not whole:
        archive_copies.fill(folder, first, platform.MONTHS)
    return rows


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.monotonic()
    done = work()
    return done, time.monotonic() - start


def _rounds(options: Options, run: Callable[[str], Any], query: Query) -> list[float]:
    """Once to warm up, then the rounds; empty if the engine does not know a function."""
    try:
        _, first = _timed(lambda: run(query.sql))
    except duckdb.CatalogException:
        return []
    if first > SLOW:
        return [first]
    return [_timed(lambda: run(query.sql))[1] for _ in range(options.rounds)]


def _add(found: list[Timed], query: Query, seconds: list[float]) -> None:
    for each in found:
        if (each.source, each.title) == (query.dashboard, query.title):
            each.seconds.append(seconds)
            return
    found.append(Timed(query.dashboard, query.title, [seconds]))


def table(result: Result) -> str:
    """The platforms, then a table for each engine; bold where the aim is missed."""
    head = ["turns", *(f"{size.turns:,}" for size in result.sizes)]
    rows = [
        ["sessions", *(f"{size.sessions:,}" for size in result.sizes)],
        ["rebuilding the roll-ups, s", *(f"{size.rolled_up:.1f}" for size in result.sizes)],
        ["writing the platform, s", *(f"{size.written:.1f}" for size in result.sizes)],
        ["archiving, s", *(f"{size.archived:.1f}" for size in result.sizes)],
        ["archived turns", *(f"{size.moved or size.turns:,}" for size in result.sizes)],
        ["database, MB", *(f"{size.database / 1e6:,.0f}" for size in result.sizes)],
        ["archive, MB", *(f"{size.files / 1e6:,.0f}" for size in result.sizes)],
    ]
    largest = max(size.turns for size in result.sizes)
    lacking = ""
    if largest < LARGEST:
        lacking = (
            f"\n\nMore than {largest:,} turns were not measured: `python -m benchmarks --only "
            f"{NAME} --turns {LARGEST}` does it."
        )
    return (
        f"{markdown.table(head, rows)}{lacking}\n\n"
        f"PostgreSQL, seconds, {result.cores} cores; bold: more than {AIM:.0f} s.\n\n"
        f"{_times(result.postgresql, head[1:])}\n\n"
        "DuckDB over the archive, the queries that read facts, seconds; –: PostgreSQL's function "
        f"only.\n\n{_times(result.duckdb, head[1:])}"
    )


def _times(timed: list[Timed], sizes: list[str]) -> str:
    rows = [
        [f"{each.source}: {each.title}", *(_shown(rounds) for rounds in each.seconds)]
        for each in timed
    ]
    return markdown.table(["query", *sizes], rows)


def _shown(rounds: list[float]) -> str:
    if not rounds:
        return "–"
    typical = median(rounds)
    text = f"{typical:.3f}" if typical < 1 else f"{typical:.2f}"
    return f"**{text}**" if typical > AIM else text
