"""`rapport reviews ask` as a process: it waits for an endpoint that fails, and ends with 0."""

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from stream_app.worker.kafka.broker import free_port
from tests.asking.chat_stub import ChatStub, said, status
from tests.asking.permission import AGREED, QUOTE
from tests.e2e.test_health import answer
from tests.store.batches import consent, end, process, turn
from tests.store.reading import rows

pytestmark = pytest.mark.slow
CARDS = """
version: 1
scorecards:
  - name: plain
    title: In plain words
    criteria:
      - {name: end, question: Was there a good end?, scale: ["no", "yes"], asked: true}
"""


@pytest.mark.timeout(180)
def test_it_asks_when_the_endpoint_is_back(store: Store, stub: ChatStub, tmp_path: Path) -> None:
    begun = datetime.now(UTC) - timedelta(minutes=9)
    times = [(begun + timedelta(minutes=minute)).isoformat() for minute in range(4)]
    turns = [turn(seq, session_id="new", occurred_at=times[seq]) for seq in range(2)]
    agreed = consent(session_id="new", **{**AGREED, "occurred_at": times[2]})
    store.commit(process([*turns, agreed, end(session_id="new", occurred_at=times[3])]))
    cards, health = tmp_path / "cards.yaml", free_port()
    cards.write_text(CARDS, "utf-8")
    stub.answers(*[status(503)] * 3, said(f'{{"quote": "{QUOTE}", "answer": "yes"}}'))
    environment = {
        "RAPPORT_DATABASE_URL": f"sqlite:///{tmp_path}/asked.db",
        "RAPPORT_SCORECARDS": str(cards),
        "RAPPORT_ASK_ENDPOINT": stub.url,
        "RAPPORT_ASK_MODEL": "small",
        "RAPPORT_HEALTH_PORT": str(health),
    }
    command = [sys.executable, "-m", "tests.impatient", "reviews", "ask"]
    with subprocess.Popen(command, env={**os.environ, **environment}) as asking:
        try:
            until = time.monotonic() + 90
            while not rows(store, tables.proposals) and time.monotonic() < until:
                time.sleep(0.1)
            [stored] = rows(store, tables.proposals)
            assert (stored["session_id"], stored["answer"]) == ("new", "yes")
            assert answer(health, "/healthz")[0] == 200
            asking.send_signal(signal.SIGTERM)
            assert asking.wait(30) == 0
        finally:
            asking.kill()
