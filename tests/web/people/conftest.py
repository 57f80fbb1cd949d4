from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.settings import Settings
from stream_app.store import schema
from stream_app.store.people import People, Person, PersonRole
from stream_app.store.repository import Store, open_store
from tests.store import judging
from tests.store.batches import prepare
from tests.web.people.inside import Client

As = Callable[[str], Client]


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Store]:
    """Sessions of two teams, and people of every role."""
    store = open_store(f"sqlite:///{tmp_path}/rapport.db")
    schema.upgrade(store)
    prepare(store)
    judging.fill(store)
    judging.counsellor(store)
    for name, team in (("sue", "north"), ("ben", "north"), ("sam", "south"), ("pat", None)):
        judging.supervisor(store, name, team)
    judging.person(store, "ana", PersonRole.ANALYST)
    judging.person(store, "ada", PersonRole.ADMIN)
    olu = Person("olu", PersonRole.COUNSELLOR, None, store.privacy.pseudonym("olu@example.org"))
    People(store).add(olu, None)
    yield store
    store.close()


@pytest.fixture
def as_(filled: Store, tmp_path: Path) -> As:
    """A client that asks as this person; nobody for an empty name."""
    url = SecretStr(f"sqlite:///{tmp_path}/rapport.db")
    app = bootstrap.web(Settings().model_copy(update={"database_url": url}))

    def client(name: str) -> Client:
        return Client(app, People(filled).new_token(name, "test") if name else "")

    return client
