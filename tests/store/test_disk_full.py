"""A full disk under SQLite: nothing is half stored, and work continues when there is room again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_app.errors import StoreUnavailable
from stream_app.store.database import tables
from tests.chaos.disk import SmallDisk, small_disk
from tests.store import databases
from tests.store.batches import BUNDLE, prepare, process, turn
from tests.store.databases import open_store
from tests.store.reading import rows


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    made = small_disk()
    if made is None:
        pytest.skip("a full disk needs root, to mount a small file system")
    yield made
    made.remove()


def test_a_commit_on_a_full_disk_is_retried_later_and_stored_once(disk: SmallDisk) -> None:
    store = prepare(open_store(databases.sqlite(Path(disk.folder, "one.db"))))
    log = [turn(seq, text=f"I said it {seq} times " * 500) for seq in range(60)]
    store.commit(process(log[:5]))
    disk.fill()
    result = process(log[5:], store.load_states(["s"], BUNDLE))
    with pytest.raises(StoreUnavailable, match="full"):
        store.commit(result)
    assert len(rows(store, tables.turns)) == 5
    disk.release()
    store.commit(result)
    assert [row["seq"] for row in rows(store, tables.turns)] == list(range(60))
    store.close()
