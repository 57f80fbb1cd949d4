"""With RAPPORT_DATABASE_READ_URL, analytics are read from there, and everything else is not."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from tests.store import databases
from tests.store.batches import prepare
from tests.web.people.client import Client
from tests.web.people.longitudinal import Platform, platform

__all__ = ["platform"]


@pytest.fixture
def client(platform: Platform, tmp_path: Path) -> Client:
    """An analyst's, of a main database that has no sessions; the platform is the replica."""
    main = databases.sqlite(tmp_path / "main.db")
    store = prepare(databases.open_store(main))
    People(store).add(Person("ana", PersonRole.ANALYST), None)
    token = People(store).create_token("ana", "test")
    changes = {"database_url": SecretStr(main), "database_read_url": SecretStr(platform.url)}
    return Client(bootstrap.web(Settings().model_copy(update=changes)), token)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/analytics?from=2026-01-01&to=2026-07-01&measure=explorations", "synthetic-"),
        ("/teams", "synthetic-"),
        ("/api/v1/analyses/over-time?fewest_days=30", "synthetic-1"),
    ],
)
def test_analytics_are_read_from_the_replica(client: Client, path: str, said: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    assert said in answer.text


def test_the_read_is_audited_in_the_main_database(
    client: Client, platform: Platform, tmp_path: Path
) -> None:
    client.get("/api/v1/analyses/over-time?fewest_days=30")
    main = databases.open_store(databases.sqlite(tmp_path / "main.db"))
    assert [entry.detail for entry in audit.find(main).items] == ["analysis over-time"]
    assert not audit.find(platform.store, person="ana").items
