"""The SQL of the pages about the archive runs on an archive's files, with DuckDB."""

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from stream_app.store.stream.repository import open_store
from tests.analytics.archiving import fill, move
from tests.store import databases
from tests.store.batches import prepare

DOCS = Path(__file__).parents[2] / "docs"
DUCKDB = re.findall(
    r"^```sql\n(.*?)^```$",
    (DOCS / "archive-duckdb.md").read_text("utf-8"),
    re.DOTALL | re.MULTILINE,
)
PORTABLE = re.findall(
    r"<!-- portable -->\n```sql\n(.*?)```",
    (DOCS / "archive-warehouse.md").read_text("utf-8"),
    re.DOTALL,
)
FOR_MANY = "HAVING"
"""Statements that leave out groups of few people, as the small archive's are."""


@pytest.fixture(scope="module")
def over_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The views of the page over an archive of two months."""
    folder = tmp_path_factory.mktemp("archived")
    store = prepare(open_store(databases.sqlite(folder / "rapport.db")))
    fill(store)
    move(store, folder / "archive")
    store.close()
    connection = duckdb.connect()
    connection.execute(DUCKDB[0].replace("archive/", f"{folder}/archive/"))
    connection.execute(
        "CREATE VIEW fact_alert AS SELECT * FROM read_parquet("
        f"'{folder}/archive/fact_alert/*/*.parquet', hive_partitioning = true)"
    )
    yield connection
    connection.close()


@pytest.mark.parametrize("statement", [*DUCKDB[1:], *PORTABLE])
def test_statements_run(over_files: duckdb.DuckDBPyConnection, statement: str) -> None:
    found = over_files.execute(statement).fetchall()
    assert bool(found) == (FOR_MANY not in statement)


def test_there_are_statements_of_both_pages() -> None:
    assert (len(DUCKDB), len(PORTABLE)) == (6, 3)


def test_months_have_their_sessions(over_files: duckdb.DuckDBPyConnection) -> None:
    for statement in (DUCKDB[1], PORTABLE[0]):
        rows = over_files.execute(statement).fetchall()
        assert [(row[0], row[2]) for row in rows] == [("2026-01", 2), ("2026-02", 4)]
