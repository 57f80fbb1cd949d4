"""An older database takes the place of the worker's while it runs: nothing is skipped.

Examples: a backup is restored during an outage that the worker survives by retrying; PostgreSQL
fails over to a replica that lags.
"""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stream_app.core.pipeline.pipeline import Received, Source, receive
from stream_app.errors import DatabaseWentBack
from stream_app.store.database import tables
from stream_app.store.stream.log_positions import StartOffsets
from stream_app.store.stream.repository import Store
from stream_app.worker.batches.processor import BatchProcessor
from tests.store.batches import turn
from tests.store.reading import rows
from tests.worker.processors import processor

Open = Callable[..., Store]
PLACE = ("t", 0)


@pytest.fixture
def worker(open_prepared: Open, tmp_path: Path) -> Iterator[BatchProcessor]:
    """A worker that started on an empty database, with its turns 0 to 3 in a backup."""
    worker = processor(open_prepared())
    start(worker, 0)
    take(worker, 0, 4)
    copy(tmp_path / "one.db", tmp_path / "backup.db")
    return worker


def start(worker: BatchProcessor, stored: int) -> None:
    worker.positions.continue_from(lambda: StartOffsets({PLACE: stored}, {}, {PLACE: stored}))


def copy(source: Path, target: Path) -> None:
    with sqlite3.connect(source) as old, sqlite3.connect(target) as new:
        old.backup(new)


def take(worker: BatchProcessor, first: int, last: int, session: str = "s") -> None:
    worker.handle_bisecting(worker.prepare(events(first, last, session)))


def events(first: int, last: int, session: str = "s") -> list[Received]:
    return [
        receive(Source("t", 0, seq), turn(seq, session_id=session)) for seq in range(first, last)
    ]


def stored(store: Store) -> list[int]:
    return [row["seq"] for row in rows(store, tables.turns)]


@pytest.mark.parametrize("session", ["s", "another"])
def test_a_batch_after_a_gap_in_the_database_is_refused(
    worker: BatchProcessor, open_prepared: Open, tmp_path: Path, session: str
) -> None:
    take(worker, 4, 8)
    copy(tmp_path / "backup.db", tmp_path / "one.db")
    with pytest.raises(DatabaseWentBack, match="4 events"):
        take(worker, 8, 10, session)
    store = open_prepared()
    assert stored(store) == [0, 1, 2, 3]
    again = processor(store)
    start(again, 4)
    take(again, 4, 10)
    assert stored(store) == list(range(10))


def test_a_batch_from_before_a_rebalance_is_refused(
    worker: BatchProcessor, open_prepared: Open, tmp_path: Path
) -> None:
    """The rebalance sees the older database first; the batch was read before and waits."""
    take(worker, 4, 8)
    copy(tmp_path / "backup.db", tmp_path / "one.db")
    with pytest.raises(DatabaseWentBack, match="4 events"):
        start(worker, 4)
    with pytest.raises(DatabaseWentBack, match="4 events"):
        take(worker, 8, 10)
    assert stored(open_prepared()) == [0, 1, 2, 3]


def test_a_batch_that_is_committed_during_a_rebalance_is_no_sign_of_an_older_database(
    worker: BatchProcessor,
) -> None:
    def read() -> StartOffsets:
        take(worker, 4, 8)
        return StartOffsets({PLACE: 4}, {}, {PLACE: 4})

    worker.positions.continue_from(read)
    worker.positions.check()
    take(worker, 8, 10)


def test_a_worker_without_new_events_notices_it(worker: BatchProcessor, tmp_path: Path) -> None:
    take(worker, 4, 8)
    worker.positions.check()
    copy(tmp_path / "backup.db", tmp_path / "one.db")
    with pytest.raises(DatabaseWentBack, match="4 events"):
        worker.positions.check()


def test_a_database_without_the_position_is_refused(worker: BatchProcessor, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "one.db") as connection:
        connection.execute("DELETE FROM log_positions")
    with pytest.raises(DatabaseWentBack, match="4 events"):
        take(worker, 4, 8)


def test_events_that_were_stored_before_the_acknowledgement_are_read_again(
    worker: BatchProcessor, open_prepared: Open
) -> None:
    """The group's offset is behind the database's after a crash between the two commits."""
    again = processor(open_prepared())
    start(again, 4)
    take(again, 2, 6)
    assert stored(open_prepared()) == list(range(6))


def test_a_zombie_does_not_move_the_position_back(
    worker: BatchProcessor, open_prepared: Open
) -> None:
    successor = processor(open_prepared())
    start(successor, 4)
    take(successor, 4, 9)
    take(worker, 4, 6)
    [position] = rows(open_prepared(), tables.log_positions)
    assert position["next_offset"] == 9
    successor.positions.check()
    take(successor, 9, 10)


def test_a_recreated_topic_starts_again_at_its_first_offset(
    worker: BatchProcessor, open_prepared: Open
) -> None:
    take(worker, 0, 2, "new")
    [position] = rows(open_prepared(), tables.log_positions)
    assert position["next_offset"] == 2
    worker.positions.check()
    take(worker, 2, 3, "new")
