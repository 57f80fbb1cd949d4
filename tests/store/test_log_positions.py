"""The group's stored offsets, and the start offsets after restarts and restores."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from stream_app.core.session.ports import LogPosition
from stream_app.errors import DatabaseWentBack, StaleState
from stream_app.store.database import tables
from stream_app.store.stream import log_positions, schema
from stream_app.store.stream.repository import Store
from tests.store.batches import prepare, process, turn
from tests.store.reading import rows

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
T0, T1 = ("turns", 0), ("turns", 1)


def position(offset: int, partition: int = 0, group: str = "g") -> LogPosition:
    return LogPosition(group, "turns", partition, offset)


def begin(store: Store, committed: dict[tuple[str, int], int | None]) -> log_positions.StartOffsets:
    return log_positions.start_offsets(store, "g", committed, NOW)


def test_offsets_are_written_with_their_batch(store: Store, other: Store) -> None:
    store.commit(process([turn()]), (), [position(1), position(7, partition=1)])
    store.commit(process([turn(1)], store.load_states(["s"], "fake-1-fp32")), (), [position(2)])
    assert log_positions.stored_offsets(store, "g", ["turns"]) == {T0: 2, T1: 7}
    assert log_positions.stored_offsets(store, "another", ["turns"]) == {}
    assert log_positions.stored_offsets(store, "g", ["another"]) == {}


def test_a_failed_batch_does_not_advance_the_stored_offsets(store: Store, other: Store) -> None:
    stale = process([turn(session_id="x")])
    other.commit(process([turn(session_id="x")]))
    with pytest.raises(StaleState):
        store.commit(stale, (), [position(9)])
    assert log_positions.stored_offsets(store, "g", ["turns"]) == {}


def test_a_batch_after_missing_events_is_refused(store: Store) -> None:
    store.commit(process([turn()]), (), [position(5), position(5, partition=1)])
    for found in (
        [LogPosition("g", "turns", 0, 9, 8)],
        [LogPosition("g", "turns", 0, 6, 5), LogPosition("g", "turns", 1, 9, 8)],
    ):
        with pytest.raises(DatabaseWentBack, match="3 events"):
            store.commit(process([turn(session_id="next")]), (), found)
        with pytest.raises(DatabaseWentBack, match="3 events"):
            store.check_positions(found)
    with pytest.raises(DatabaseWentBack, match="2 events"):
        store.check_positions([LogPosition("g", "turns", 2, 2, 2)])
    assert log_positions.stored_offsets(store, "g", ["turns"]) == {T0: 5, T1: 5}
    assert store.load_states(["next"], "fake-1-fp32") == {}


@pytest.mark.parametrize(
    ("next_offset", "stored", "then"), [(9, 5, 9), (9, 4, 9), (4, 3, 5), (2, 5, 2)]
)
def test_only_a_worker_that_is_up_to_date_moves_the_position_back(
    store: Store, next_offset: int, stored: int, then: int
) -> None:
    store.commit(process([turn()]), (), [position(5)])
    found = [LogPosition("g", "turns", 0, next_offset, stored)]
    store.commit(process([turn(session_id="next")]), (), found)
    assert log_positions.stored_offsets(store, "g", ["turns"]) == {T0: then}


def test_events_deleted_unread_are_recorded_and_counted_once(store: Store) -> None:
    def record(place: tuple[str, int], first: int, until: int) -> None:
        log_positions.record_deleted(store, "g" * 200, place, first, until, NOW)

    record(T0, 4, 10)
    record(T0, 4, 10)  # by a worker that failed before it went on behind them
    record(T0, 4, 12)
    record(T0, 20, 25)
    record(T1, 0, 3)
    found = log_positions.deleted_unread(store, "g" * 200, [T0, T1, ("turns", 2)])
    assert {at: (each.count, each.until) for at, each in found.items()} == {
        T0: (13, 25),
        T1: (3, 3),
    }
    assert log_positions.deleted_unread(store, "another", [T0, T1]) == {}


def test_a_database_with_the_groups_offsets_starts_there(store: Store) -> None:
    store.commit(process([turn()]), (), [position(5), position(9, partition=1)])
    found = begin(store, {T0: 5, T1: 7, ("turns", 2): None})
    assert found.offsets == {T0: 5, T1: 7, ("turns", 2): 0}
    assert found.rewound == {}
    assert found.stored == {T0: 5, T1: 9, ("turns", 2): 0}


def test_an_older_database_rewinds_the_group(store: Store) -> None:
    store.commit(process([turn()]), (), [position(5)])
    found = begin(store, {T0: 50, T1: 8})
    assert found.offsets == found.rewound == {T0: 5, T1: 0}


def test_an_empty_database_starts_at_offset_zero(store: Store) -> None:
    assert begin(store, {T0: 50}).rewound == {T0: 0}


def test_a_database_without_positions_adopts_the_brokers_offsets(
    empty_url: str, opened: Callable[[str], Store]
) -> None:
    store = opened(empty_url)
    schema.upgrade(store)
    prepare(store).commit(process([turn()]))
    schema.downgrade(store, "0010")
    schema.upgrade(store)
    assert begin(store, {T0: 50}).rewound == {}
    assert [row["next_offset"] for row in rows(store, tables.log_positions)] == [50]
    assert begin(store, {T0: 60, T1: 8}).rewound == {T0: 50}
    schema.downgrade(store, "0010")
    assert log_positions.ADOPT_OFFSETS not in {
        row["name"] for row in rows(store, tables.installation)
    }
