from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stream_app.store.stream.repository import Store, open_store
from tests.store import databases
from tests.store.batches import prepare


@pytest.fixture
def open_prepared(tmp_path: Path) -> Iterator[Callable[[str], Store]]:
    """Opens SQLite stores; equal names share a database."""
    stores: list[Store] = []

    def open_one(name: str = "one") -> Store:
        stores.append(open_store(databases.sqlite(tmp_path / f"{name}.db")))
        return prepare(stores[-1])

    yield open_one
    for store in stores:
        store.close()
