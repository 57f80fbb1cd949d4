"""`rapport notify` with several targets and real processes."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from stream_app.store.database import tables
from stream_app.store.stream import schema
from stream_app.store.stream.repository import Store
from stream_app.worker.kafka.broker import free_port
from tests.e2e.test_health import answer
from tests.notifications.alerts import add
from tests.notifications.conftest import Start, listening
from tests.notifications.receiver import attempts
from tests.store.conftest import empty_url, opened
from tests.store.reading import rows

pytestmark = pytest.mark.slow

__all__ = ["empty_url", "opened"]
SECRET = "zanzibar"
SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ALERTS = 6
FILE = """
targets:
  - name: desk
    kind: webhook
    url: http://127.0.0.1:${PORT}/${TOKEN}
    allow: [127.0.0.0/8]
    secret: ${SIGNING}
    rules: [low-empathy-risk]
  - name: hangs
    kind: webhook
    url: http://127.0.0.1:${HANGING}/${TOKEN}
    allow: [127.0.0.0/8]
    timeout: 3
  - name: chat
    kind: apprise
    url: json://127.0.0.1:${CHATTING}/${TOKEN}
    allow: [127.0.0.0/8]
    hourly_cap: 1800     # all reserved for digests: nothing is sent separately
    digest_every: 2s
"""


def until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if true():
            return
        time.sleep(0.1)
    raise AssertionError(f"timeout: {what}")


@pytest.mark.timeout(180)
def test_targets_have_their_own_limits_and_do_not_delay_each_other(
    empty_url: str, opened: Callable[[str], Store], start: Start, tmp_path: Path
) -> None:
    store = opened(empty_url)
    schema.upgrade(store)
    logs = {name: tmp_path / name for name in ("desk", "hangs", "chat")}
    ports = {name: free_port() for name in logs}
    for name, plan in (("desk", "ok"), ("hangs", "hang"), ("chat", "ok")):
        module = "tests.notifications.receiver"
        given = ("--port", ports[name], "--log", logs[name], "--secret", SIGNING)
        start(module, *given, "--attempts", plan)
        listening(ports[name])
    file, errors, health = tmp_path / "notifications.yaml", tmp_path / "stderr", free_port()
    file.write_text(FILE, "utf-8")
    environment = {
        "RAPPORT_NOTIFICATIONS": str(file),
        "RAPPORT_DATABASE_URL": empty_url,
        "RAPPORT_LOG_LEVEL": "DEBUG",
        "RAPPORT_HEALTH_PORT": str(health),
        "PORT": str(ports["desk"]),
        "HANGING": str(ports["hangs"]),
        "CHATTING": str(ports["chat"]),
        "TOKEN": SECRET,
        "SIGNING": SIGNING,
    }

    def notifier() -> subprocess.Popen[bytes]:
        with errors.open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.impatient", "notify"],
                env={**os.environ, **environment},
                stderr=out,
            )

    notifying = notifier()
    try:
        until(lambda: len(rows(store, tables.notification_targets)) == 3, "the targets are known")
        for number in range(ALERTS):
            add(store, f"s{number}", "firing", datetime.now(UTC))
        add(store, "other", "firing", datetime.now(UTC), rule="sudden-drop", severity="critical")

        until(lambda: len(attempts(logs["desk"])) == ALERTS, "the desk has all of its own")
        until(
            lambda: delivery_states(store, "chat")["digested"] == ALERTS + 1,
            "the chat has its digest",
        )
        assert delivery_states(store, "hangs")["delivered"] == 0
        notifying.kill()
        notifying.wait()
        notifying = notifier()
        for number in range(ALERTS):
            add(store, f"s{number}", "resolved", datetime.now(UTC))
        until(lambda: len(attempts(logs["desk"])) == 2 * ALERTS, "resolved, too")
        until(
            lambda: delivery_states(store, "chat")["digested"] == 2 * ALERTS + 1, "in a digest, too"
        )

        def reasons() -> str:
            return answer(health, "/readyz")[1]

        until(lambda: "hangs: no answer (ReadTimeout)" in reasons(), "the probe names it")
        assert "desk" not in reasons()
        metrics = answer(health, "/metrics")[1]
        assert f'{{result="delivered",target="desk"}} {ALERTS}.0' in metrics
        notifying.send_signal(signal.SIGTERM)
        assert notifying.wait(20) == 0
    finally:
        notifying.kill()
        notifying.wait()

    assert delivery_states(store, "desk") == {"delivered": 2 * ALERTS, "filtered": 1}
    posted = attempts(logs["desk"])
    assert {line["id"] for line in posted} == {
        f"s{number}/{state}" for number in range(ALERTS) for state in ("firing", "resolved")
    }
    assert len(posted) == 2 * ALERTS, "none twice"
    digests: list[Any] = [line["body"] for line in attempts(logs["chat"])]
    assert "sudden-drop (critical) is firing" in digests[0]["message"].splitlines()[2]
    assert sum(int(digest["title"].split()[1]) for digest in digests) == 2 * ALERTS + 1
    said = errors.read_text("utf-8")
    assert "alert.delivered" in said
    assert SECRET not in said
    assert SECRET not in metrics


def delivery_states(store: Store, target: str) -> Counter[str]:
    return Counter(
        row["state"] for row in rows(store, tables.deliveries) if row["target"] == target
    )
