from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stream_app.store import schema
from stream_app.store.repository import Store, open_store
from tests.store.batches import prepare


@pytest.fixture
def open_prepared(tmp_path: Path) -> Iterator[Callable[[str], Store]]:
    """Opens SQLite stores by name; the same name is the same database."""
    stores: list[Store] = []

    def open_one(name: str = "one") -> Store:
        stores.append(open_store(f"sqlite:///{tmp_path}/{name}.db"))
        schema.upgrade(stores[-1])
        return prepare(stores[-1])

    yield open_one
    for store in stores:
        store.close()
