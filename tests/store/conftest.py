from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stream_app.store import schema
from stream_app.store.repository import Store, open_store
from tests.store.batches import prepare


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/test.db"
    return request.getfixturevalue("server").new_database()


@pytest.fixture
def opened() -> Iterator[Callable[[str], Store]]:
    """Opens stores and closes them at the end of the test."""
    stores: list[Store] = []

    def open_one(url: str) -> Store:
        stores.append(open_store(url))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def store(empty_url: str, opened: Callable[[str], Store]) -> Store:
    """A worker's store: newest schema, bundle registered."""
    upgraded = opened(empty_url)
    schema.upgrade(upgraded)
    return prepare(upgraded)


@pytest.fixture
def other(store: Store, empty_url: str, opened: Callable[[str], Store]) -> Store:
    """A second worker's store over the same database."""
    return prepare(opened(empty_url))
