from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_app.store.stream.repository import Store
from tests.adaptation import platform
from tests.commands.conftest import rapport
from tests.store import databases
from tests.store.batches import prepare

__all__ = ["rapport"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The database of the commands."""
    url = databases.sqlite(tmp_path / "one.db")
    monkeypatch.setenv("RAPPORT_DATABASE_URL", url)
    opened = databases.open_store(url)
    yield prepare(opened)
    opened.close()


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """The bundle that has scored the sessions."""
    return platform.bundle_folder(tmp_path / "parent")
