from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from tests.conftest import own_names
from tests.store import databases
from tests.store.batches import end, turn
from tests.web.api.topic import Topic
from tests.web.in_process import InProcessWeb
from tests.web.server import Web

CLEO = "cleo@example.org"
WORDS = "zanzibar"


def filled(web: Web) -> Web:
    """Add two sessions of team north, one of them Cleo's, and one of south, all with alerts."""
    facts = {"domain": "counselling", "channel": "web-chat", "lang": "en"}
    for session_id, team, counsellor, closed in (
        ("north-1", "north", "joan@example.org", True),
        ("north-2", "north", CLEO, False),
        ("south-1", "south", "jim@example.org", True),
    ):
        log = [
            turn(
                seq,
                session_id=session_id,
                team=team,
                speaker_id=counsellor if seq % 2 else f"client of {session_id}",
                text=f"That must be hard, {WORDS} {seq}. How do you feel?",
                **facts,
            )
            for seq in range(6)
        ]
        web.commit(*log, *([end(session_id=session_id)] if closed else []))
    return web


@pytest.fixture(scope="module")
def changes(request: pytest.FixtureRequest) -> Callable[[], dict[str, Any]]:
    """Settings for a new database, on PostgreSQL with ``--services``."""
    if not request.config.getoption("--services"):
        return dict
    server = request.getfixturevalue("server")
    return lambda: {"database_url": SecretStr(databases.postgresql(server))}


@pytest.fixture(scope="module")
def own_topics(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """A broker, and settings for topics that no other test uses; Kafka with ``--services``."""
    real = request.config.getoption("--services")
    where = request.getfixturevalue("cluster").address if real else None
    return where or request.getfixturevalue("embedded_broker"), own_names()


@pytest.fixture(scope="module")
def web(
    tmp_path_factory: pytest.TempPathFactory, changes: Callable[[], dict[str, Any]]
) -> Iterator[Web]:
    """The application in the test process, with a filled database and no broker."""
    running = filled(InProcessWeb(tmp_path_factory.mktemp("web"), changes=changes()))
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    """What web processes in this test send to the broker."""
    return Topic().replacing_the_broker(monkeypatch)
