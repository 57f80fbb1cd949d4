from collections.abc import Iterator
from dataclasses import replace

import pytest

from benchmarks.coverage import EFFECTS
from stream_app.demo import simulated_store
from stream_app.demo.simulator import Platform, World, simulate
from stream_app.store.stream.repository import Store, open_store
from tests.store import databases
from tests.store.conftest import empty_url, opened, store, upgraded_url

__all__ = ["empty_url", "opened", "store", "upgraded_url"]

SMALL = World(
    counsellors=24,
    months=18,
    joining_months=4,
    sessions_a_month=1.0,
    turns=3,
    new_model=9,
    leaving=0.01,
    rated=0.3,
)


@pytest.fixture(scope="session")
def platform() -> Platform:
    return simulate(SMALL)


@pytest.fixture(scope="session")
def eventful() -> Platform:
    """A platform with every effect but learning; see ``coverage.EFFECTS``."""
    return simulate(replace(EFFECTS, counsellors=60))


@pytest.fixture(scope="session")
def simulated(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A database with the platform in it."""
    url = databases.sqlite(tmp_path_factory.mktemp("simulated") / "rapport.db")
    store = open_store(url)
    store.load_privacy(redact=False)
    simulated_store.write(platform, store)
    yield store
    store.close()
