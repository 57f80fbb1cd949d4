from collections.abc import Iterator

import pytest

from tests import postgres


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    folder = postgres.binaries()
    if folder is None:
        pytest.skip("PostgreSQL's server (initdb, postgres) is not installed")
    running = postgres.Server(folder)
    yield running
    running.remove()
