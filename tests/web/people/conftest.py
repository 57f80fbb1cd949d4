import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.analytics.views import schema
from stream_app.settings import Settings
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.stream.repository import Store
from tests.store import databases, judging
from tests.store.batches import prepare
from tests.store.databases import open_store
from tests.web.people.client import Client

As = Callable[[str], Client]


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Store]:
    """A store with sessions of two teams and people of every role."""
    for name, content in _filled().items():
        (tmp_path / name).write_bytes(content)
    store = prepare(open_store(databases.sqlite(tmp_path / "rapport.db")))
    yield store
    store.close()


@cache
def _filled() -> dict[str, bytes]:
    """The database and its keys by file name, filled once per test process."""
    with tempfile.TemporaryDirectory(prefix="rapport-filled-") as folder:
        return _fill(Path(folder, "rapport.db"))


def _fill(file: Path) -> dict[str, bytes]:
    store = prepare(open_store(databases.sqlite(file)))
    schema.create_views(store)
    judging.fill(store)
    judging.counsellor(store)
    for name, team in (("sue", "north"), ("ben", "north"), ("sam", "south"), ("pat", None)):
        judging.supervisor(store, name, team)
    judging.person(store, "ana", PersonRole.ANALYST)
    judging.person(store, "ada", PersonRole.ADMIN)
    olu = Person("olu", PersonRole.COUNSELLOR, None, store.privacy.pseudonym("olu@example.org"))
    People(store).add(olu, None)
    store.close()
    return {path.name: path.read_bytes() for path in file.parent.iterdir()}


@pytest.fixture
def as_(filled: Store, tmp_path: Path) -> As:
    """Make clients signed in as a person; an empty name makes an anonymous one."""
    url = SecretStr(f"sqlite:///{tmp_path}/rapport.db")
    app = bootstrap.web(Settings().model_copy(update={"database_url": url}))

    def client(name: str) -> Client:
        return Client(app, People(filled).create_token(name, "test") if name else "")

    return client
