from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from servers.postgres import Server
from stream_app.store.stream.repository import Store
from tests.store import databases
from tests.store.batches import prepare
from tests.store.databases import open_store


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of either kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/test.db"
        return
    server: Server = request.getfixturevalue("server")
    url = server.new_database()
    yield url
    server.drop(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def upgraded_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of either kind with the newest schema."""
    if request.param == "sqlite":
        yield databases.sqlite(tmp_path / "test.db")
        return
    server: Server = request.getfixturevalue("server")
    url = databases.postgresql(server)
    yield url
    server.drop(url)


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
def store(upgraded_url: str, opened: Callable[[str], Store]) -> Store:
    """A worker's store: newest schema, bundle registered."""
    return prepare(opened(upgraded_url))


@pytest.fixture
def other(store: Store, upgraded_url: str, opened: Callable[[str], Store]) -> Store:
    """A second worker's store over the same database."""
    return prepare(opened(upgraded_url))
