"""COPY on PostgreSQL: hostile texts, extreme times, known keys and refused values."""

from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa

from stream_app.errors import RowExists, RowRefused
from stream_app.store.database import copying, tables
from stream_app.store.stream.repository import Store
from tests.store.reading import stored_rows

SECRET = "zanzibar"


def turn_row(seq: int, **values: Any) -> dict[str, Any]:
    moment = datetime(2026, 1, 5, tzinfo=UTC)
    return {
        "session_id": "s",
        "seq": seq,
        "turn_id": None,
        "speaker": "a",
        "role": "client",
        "text": SECRET,
        "chars": len(SECRET),
        "occurred_at": moment,
        "late": False,
        "produced_at": None,
        "stored_at": moment,
        "words": 1,
        "unscored": None,
        "language": None,
        **values,
    }


def insert(store: Store, *values: dict[str, Any]) -> None:
    with store.transaction() as connection:
        store.insert(connection, tables.turns, list(values))


def test_reserved_names_are_quoted() -> None:
    table = sa.Table("user", sa.MetaData(), sa.Column("order", sa.Integer))
    assert copying.copy_from(table, ["order"]) == 'COPY "user" ("order") FROM STDIN'


@pytest.mark.parametrize(
    "text",
    ["", "\\.", "\\N", "a\tb\nc\r\\d", "%s %(x)s $1", "\u2028\U0001f600", "x" * 100_000, None],
)
@pytest.mark.parametrize("count", [1, 3])
def test_texts_are_stored_as_they_are(store: Store, text: str | None, count: int) -> None:
    insert(store, *(turn_row(seq, text=text) for seq in range(count)))
    assert [row["text"] for row in stored_rows(store, tables.turns)] == [text] * count


@pytest.mark.parametrize("moment", [datetime.min, datetime.max])
def test_the_first_and_last_times_are_stored(store: Store, moment: datetime) -> None:
    expected = moment.replace(tzinfo=UTC)
    insert(store, turn_row(0, occurred_at=expected))
    assert stored_rows(store, tables.turns)[0]["occurred_at"] == expected


def test_a_known_key_is_reported_as_such_and_nothing_is_stored(store: Store) -> None:
    insert(store, turn_row(1))
    with pytest.raises(RowExists) as refused:
        insert(store, turn_row(0), turn_row(1), turn_row(2))
    assert SECRET not in str(refused.value)
    assert [row["seq"] for row in stored_rows(store, tables.turns)] == [1]


def test_a_refused_value_is_named_by_its_kind(store: Store) -> None:
    if store.engine.dialect.name == "sqlite":
        pytest.skip("SQLite stores longer texts")
    with pytest.raises(RowRefused, match="too long for type") as refused:
        insert(store, turn_row(0), turn_row(1, role=SECRET * 2))
    assert SECRET not in str(refused.value)
    assert stored_rows(store, tables.turns) == []
