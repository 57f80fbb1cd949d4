"""The example migration partitions turns and scores by month and changes nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from stream_app.store.database import tables
from stream_app.store.database.rows import turn_score_row
from stream_app.store.stream import schema
from stream_app.store.stream.repository import Store
from tests.store.batches import end, prepare, process, turn
from tests.store.reading import rows

SCRIPT = Path(__file__).parents[2] / "migrations" / "examples" / "partition_by_month.sql"
MONTHS = ("2026-01", "2026-02", "2026-03")
READ = (tables.turns, tables.turn_scores, tables.session_scores, tables.alerts)


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("server").new_database())


def session(month: str) -> list[bytes]:
    name = f"s-{month}"
    times = [f"{month}-15T10:0{seq}:00Z" for seq in range(6)]
    turns = [turn(seq, session_id=name, occurred_at=at) for seq, at in enumerate(times)]
    return [*turns, end(session_id=name, occurred_at=f"{month}-15T11:00:00Z")]


def contents(store: Store) -> dict[str, list[Any]]:
    found = {table.name: rows(store, table) for table in READ}
    for row in found["turns"]:
        del row["stored_at"]
    return {name: sorted(values, key=repr) for name, values in found.items()}


def partition(url: str) -> None:
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(SCRIPT.read_text("utf-8"))


def test_partitioning_keeps_all_rows_and_workers_continue(
    url: str, opened: Callable[[str], Store]
) -> None:
    store = opened(url)
    schema.upgrade(store)
    prepare(store)
    for month in MONTHS[:2]:
        store.commit(process(session(month)))
    before = contents(store)
    store.close()
    partition(url)
    later = prepare(opened(url))
    assert contents(later) == before
    with later.reading() as connection:
        names = set(
            connection.scalars(sa.text("SELECT relname FROM pg_class WHERE relispartition"))
        )
    assert {"turns_2026_01", "turn_scores_2026_02", "turns_other"} <= names
    again = process(session(MONTHS[1]))
    with later.transaction() as connection:  # the same rows again, as after a crash
        scores = [turn_score_row(score) for score in again.turn_scores]
        later.upsert(connection, tables.turn_scores, scores, keep=False)
    assert contents(later) == before
    later.commit(process(session(MONTHS[2])))
    assert {row["session_id"] for row in rows(later, tables.turns)} == {f"s-{m}" for m in MONTHS}
