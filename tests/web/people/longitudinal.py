"""A synthetic half-year with accounts of every role, written once per test process."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.analytics.rollups import rollups
from stream_app.analytics.views import schema
from stream_app.demo import simulated_store
from stream_app.demo.simulator import World, simulate
from stream_app.settings import Settings
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.stream.repository import Store
from tests.store import databases
from tests.web.people.client import Client

WORLD = World(
    begins=datetime(2026, 1, 5, tzinfo=UTC),
    counsellors=14,
    months=6,
    joining_months=1,
    sessions_a_month=9,
    turns=1,
    new_model=4,
    rated=0.1,
)
ATTRIBUTES = "attributes.csv"
LINKED = "counsellor-0001"
"""Speaks as the account cleo, in team south; counsellor-0000 of team north has no account."""


@dataclass(frozen=True)
class Platform:
    """The store and clients signed in as sue (all teams), nia (north), sid (south), ana, cleo."""

    store: Store
    url: str
    attributes: Path
    """File of what the people declared themselves."""

    def as_(self, name: str, **changes: Any) -> Client:
        settings = {"database_url": SecretStr(self.url), **changes}
        app = bootstrap.web(Settings().model_copy(update=settings))
        return Client(app, People(self.store).create_token(name, "test"))

    def pseudonym(self, counsellor: str) -> str:
        return self.store.privacy.pseudonym(counsellor)


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    for name, content in _written().items():
        (tmp_path / name).write_bytes(content)
    url = databases.sqlite(tmp_path / "rapport.db")
    store = databases.open_store(url)
    store.load_privacy(redact=True)
    store.load_primary_keys()
    yield Platform(store, url, tmp_path / ATTRIBUTES)
    store.close()


@cache
def _written() -> dict[str, bytes]:
    """The database and its keys by file name."""
    with tempfile.TemporaryDirectory(prefix="rapport-longitudinal-") as folder:
        file = Path(folder, "rapport.db")
        store = databases.open_store(databases.sqlite(file))
        store.load_privacy(redact=True)
        simulated = simulate(WORLD)
        simulated_store.write(simulated, store)
        rollups.rebuild(store)
        schema.create_views(store)
        speaker = store.privacy.pseudonym(LINKED)
        for person in (
            Person("sue", PersonRole.SUPERVISOR, all_teams=True),
            Person("nia", PersonRole.SUPERVISOR, "north"),
            Person("sid", PersonRole.SUPERVISOR, "south"),
            Person(simulated_store.SOMEBODY, PersonRole.SUPERVISOR),
            Person("ana", PersonRole.ANALYST),
            Person("ada", PersonRole.ADMIN),
            Person("cleo", PersonRole.COUNSELLOR, None, speaker),
        ):
            People(store).add(person, None)
        store.close()
        rows = [f"{name},{told}" for name, told in simulated.attributes.items()]
        Path(folder, ATTRIBUTES).write_text("\n".join(["speaker_id,attribute", *rows]), "utf-8")
        return {path.name: path.read_bytes() for path in file.parent.iterdir()}
