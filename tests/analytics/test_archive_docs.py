"""The statement for DuckDB in docs/archive.md runs on an archive's files."""

import re
from pathlib import Path

import duckdb

from stream_app.store.stream.repository import open_store
from tests.analytics.archiving import fill, move
from tests.store import databases
from tests.store.batches import prepare

PAGE = Path(__file__).parents[2] / "docs" / "archive.md"


def test_the_duckdb_statement_reads_the_files(tmp_path: Path) -> None:
    store = prepare(open_store(databases.sqlite(tmp_path / "rapport.db")))
    fill(store)
    move(store, tmp_path / "archive")
    store.close()
    [statement] = re.findall(
        r"<!-- duckdb -->\n```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL
    )
    found = duckdb.sql(statement.replace("archive/", f"{tmp_path}/archive/")).fetchall()
    assert [(month, turns) for month, _, _, turns in found] == [("2026-01", 6), ("2026-02", 12)]
