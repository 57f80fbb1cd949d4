from collections.abc import Iterator

import pytest

from tests.store.batches import end, turn
from tests.web.server import Web

CLEO = "cleo@example.org"
WORDS = "zanzibar"


def filled(web: Web) -> Web:
    """Two sessions of the north, one of them Cleo's, one of the south; alerts in all of them."""
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
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A web process over a filled database; nobody listens where its broker should be."""
    running = filled(Web(tmp_path_factory.mktemp("web")))
    try:
        running.start()
        yield running
    finally:
        running.stop()
