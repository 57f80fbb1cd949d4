"""The mechanisms of session scores: an array on PostgreSQL, the same when read."""

import pytest
import sqlalchemy as sa

from stream_app.analytics.views.dialects import PostgreSQL, SQLite
from stream_app.contracts.scores import MECHANISMS, MechanismSummary
from stream_app.store.database import tables
from stream_app.store.database.mechanism_means import PARTS, as_mechanisms, as_numbers
from stream_app.store.stream import schema
from stream_app.store.stream.repository import Store
from tests.store.batches import end, process, turn
from tests.store.reading import rows

WHOLE = {name: MechanismSummary(0.5 + i, 1 / 3, 0.25) for i, name in enumerate(MECHANISMS)}


@pytest.mark.parametrize(
    "mechanisms", [{}, WHOLE, {"explorations": WHOLE["explorations"]}], ids=["none", "all", "one"]
)
def test_the_array_has_all_numbers(mechanisms: dict[str, MechanismSummary]) -> None:
    found = as_mechanisms(as_numbers(mechanisms))
    assert {name: MechanismSummary(**parts) for name, parts in found.items()} == mechanisms  # type: ignore[arg-type]


def test_sql_reads_what_was_scored(store: Store) -> None:
    result = process([turn(seq) for seq in range(9)])
    store.commit(result)
    [score] = result.session_scores
    dialect = PostgreSQL() if store.engine.dialect.name == "postgresql" else SQLite()
    with store.reading() as connection:
        for name, summary in score.mechanisms.items():
            for part in PARTS:
                read = dialect.mechanism("mechanisms", name, part)
                query = sa.text(f"SELECT {read} FROM session_scores")
                assert connection.scalar(query) == getattr(summary, part)


def test_mechanisms_survive_the_migration_down_and_up(store: Store) -> None:
    store.commit(process([turn(seq) for seq in range(9)]))
    store.commit(process([end(session_id="empty")]))
    before = rows(store, tables.session_scores)
    assert [bool(row["mechanisms"]) for row in before] == [False, True]
    schema.downgrade(store, "0010")
    with store.reading() as connection:
        query = "SELECT mechanisms FROM session_scores ORDER BY session_id"
        kept = sa.text(query).columns(mechanisms=sa.JSON)
        assert list(connection.scalars(kept)) == [row["mechanisms"] for row in before]
    schema.upgrade(store)
    assert rows(store, tables.session_scores) == before
