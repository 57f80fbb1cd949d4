"""Platforms for the dashboard benchmark, and the table made from its figures."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import pytest
import sqlalchemy as sa

from benchmarks import platform
from benchmarks.parts import analytics
from benchmarks.parts.analytics import Result, Size, Timed
from benchmarks.storage import archive_copies, archive_views, dashboards
from servers.postgres import Server
from stream_app.analytics.archive import archive
from stream_app.analytics.rollups import rollups
from stream_app.analytics.views import schema
from stream_app.inference.bundles import bundle as bundles
from stream_app.store.stream.repository import Store
from tests.store import databases

TURNS = 4_000


@pytest.fixture(scope="module")
def written(server: Server) -> Iterator[Store]:
    url = databases.postgresql(server)
    store = databases.open_store(url)
    manifest = bundles.load(bundles.DEFAULT_BUNDLE).manifest
    assert platform.write(store, manifest, TURNS, lambda _: None) == TURNS // 20
    schema.create_views(store)
    rollups.rebuild(store)
    yield store
    store.close()
    server.drop(url)


def one(store: Store, query: str) -> object:
    with store.reading() as connection:
        return connection.scalar(sa.text(query))


def test_a_platform_has_the_wanted_turns_with_all_heads(written: Store) -> None:
    assert one(written, "SELECT count(*) FROM fact_turn") == TURNS
    assert one(written, "SELECT count(DISTINCT counsellor) FROM fact_turn") == 20
    of_counsellors = "FROM fact_turn WHERE role = 'counsellor'"
    assert one(written, f"SELECT count(expressed_strategy_question) {of_counsellors}") == TURNS / 2
    assert one(written, f"SELECT count(DISTINCT explorations_expected) {of_counsellors}") > 100
    assert one(written, "SELECT count(*) FROM fact_alert WHERE resolved_at > fired_at") == 20
    assert one(written, "SELECT count(*) FROM shown_month WHERE NOT hidden") > 10


def test_every_query_runs_and_some_find_rows(written: Store) -> None:
    found = {}
    with written.reading() as connection:
        for query in analytics.all_queries():
            assert "$" not in query.sql
            found[query.dashboard, query.title] = connection.exec_driver_sql(query.sql).all()
    assert len(found) > 30
    assert sum(bool(rows) for rows in found.values()) >= 20


def test_a_dashboards_range_ends_with_the_platform() -> None:
    queries = dashboards.queries(platform.END, analytics.VARIABLES)
    [sql] = [query.sql for query in queries if query.title == "Confidence"]
    assert "BETWEEN '2026-04-02 00:00:00+00' AND '2026-07-01 00:00:00+00'" in sql


def test_the_table_says_what_was_not_measured_and_what_misses_the_aim() -> None:
    size = Size(1000, 50, 1.0, 2.0, 3.0, 4_000_000, 1_000_000)
    shown = analytics.table(
        Result(
            2,
            [size],
            [Timed("board", "fast", [[0.1, 0.2, 0.3]]), Timed("board", "slow", [[2.0]])],
            [Timed("board", "unknown", [[]])],
        )
    )
    assert "| board: fast | 0.200 |" in shown
    assert "| board: slow | **2.00** |" in shown
    assert "| board: unknown | – |" in shown
    assert "More than 1,000 turns were not measured" in shown


def test_an_archive_can_be_filled_with_copies_of_a_month(written: Store, tmp_path: Path) -> None:
    first = date(2025, 7, 1)
    [moved] = archive.archive(written, tmp_path, date(2025, 8, 1), datetime.now(UTC))
    archive_copies.fill(tmp_path, first, 3)
    with analytics.opened(tmp_path, 1) as connection:
        query = "SELECT month, count(*), count(DISTINCT session_id), min(date) FROM fact_turn"
        rows = connection.sql(f"{query} GROUP BY month ORDER BY month").fetchall()
        assert rows == [
            (name, moved.rows["fact_turn"], moved.sessions, date.fromisoformat(f"{name}-02"))
            for name in ("2025-07", "2025-08", "2025-09")
        ]
        assert connection.sql("SELECT count(DISTINCT session_id) FROM fact_turn").fetchall() == [
            (3 * moved.sessions,)
        ]
        read = [q for q in analytics.all_queries() if any(v in q.sql for v in archive_views.VIEWS)]
        assert len(read) > 15
        for query in read:
            with suppress(duckdb.CatalogException):  # PostgreSQL's function
                connection.sql(query.sql).fetchall()
