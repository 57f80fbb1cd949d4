import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from stream_app.store.stream.repository import Store
from tests.asking.chat_stub import ChatStub, chat_stub
from tests.asking.permission import permit
from tests.store import databases, judging
from tests.store.batches import prepare
from tests.store.databases import open_store


@pytest.fixture
def stub() -> Iterator[ChatStub]:
    with chat_stub() as served:
        yield served


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Ended sessions of two teams; north-0 alone agreed to processing by a third party."""
    for name, content in _filled().items():
        (tmp_path / name).write_bytes(content)
    opened = prepare(open_store(databases.sqlite(tmp_path / "asked.db")))
    yield opened
    opened.close()


@cache
def _filled() -> dict[str, bytes]:
    """The database and its keys by file name, filled once per test process."""
    with tempfile.TemporaryDirectory(prefix="rapport-asked-") as folder:
        file = Path(folder, "asked.db")
        made = prepare(open_store(databases.sqlite(file)))
        judging.fill(made, 2)
        permit(made, "north-0")
        made.close()
        return {path.name: path.read_bytes() for path in file.parent.iterdir()}
