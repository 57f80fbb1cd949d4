"""The SQL statements of the docs run, on each database that they are for."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa

from stream_app.analytics.rollups import rollups
from stream_app.analytics.views import schema
from stream_app.store.stream.repository import Store
from tests.store import batches

DOCS: Final = Path(__file__).parents[2] / "docs"
ELSEWHERE: Final = {"archive-duckdb.md", "archive-warehouse.md"}
"""Statements for other engines; tests/analytics/test_archive_docs.py runs DuckDB's."""
FOR_A_SERVER: Final = re.compile(r"-- PostgreSQL\n|CREATE ROLE ")
EMBEDDED: Final = "-- SQLite\n"
_BLOCK: Final = re.compile(r"^```sql\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks() -> list[tuple[str, str]]:
    """Page and text of every block of SQL."""
    return [
        (page.name, block)
        for page in sorted(DOCS.rglob("*.md"))
        if page.name not in ELSEWHERE
        for block in _BLOCK.findall(page.read_text("utf-8"))
    ]


def is_for(block: str, dialect: str) -> bool:
    if block.startswith(EMBEDDED):
        return dialect == "sqlite"
    return dialect == "postgresql" or not FOR_A_SERVER.match(block)


def session(name: str, day: str) -> list[bytes]:
    events = [
        batches.turn(seq, session_id=name, domain="counselling", occurred_at=f"{day}T10:0{seq}:00Z")
        for seq in range(4)
    ]
    return [*events, batches.end(session_id=name, occurred_at=f"{day}T11:00:00Z")]


@pytest.fixture
def filled(store: Store) -> Store:
    """Somebody who joined on Sunday the first of March, in the week of 23 February."""
    for name, day in (("s-1", "2026-03-01"), ("s-2", "2026-03-02"), ("s-3", "2026-04-06")):
        store.commit(batches.process(session(name, day)))
    schema.create_views(store)
    list(rollups.update(store))
    return store


def results(store: Store, block: str) -> list[dict[str, Any]]:
    """Run the block's statements, take them back, and return the last one's rows."""
    with store.engine.connect() as connection:
        for statement in filter(None, map(str.strip, block.split(";"))):
            answer = connection.exec_driver_sql(statement.replace("%", "%%"))
        found = [dict(row) for row in answer.mappings()] if answer.returns_rows else []
        connection.rollback()
    return found


def test_the_docs_have_sql_for_both_databases() -> None:
    for dialect in ("sqlite", "postgresql"):
        assert len([block for _, block in blocks() if is_for(block, dialect)]) >= 2


def test_every_statement_of_the_docs_runs(filled: Store) -> None:
    dialect = filled.engine.dialect.name
    for page, block in blocks():
        if is_for(block, dialect):
            try:
                found = results(filled, block)
            except sa.exc.DBAPIError as problem:
                pytest.fail(f"{page} on {dialect}: {problem}")
            assert found or not re.search(r"^SELECT ", block, re.MULTILINE), page


def test_months_since_joining_begin_with_zero(filled: Store) -> None:
    [statement] = [block for page, block in blocks() if "AS months" in block]
    found = results(filled, statement)
    assert [row["months"] for row in found] == [0, 1, 2]
    assert sum(row["sessions"] for row in found) == 3
