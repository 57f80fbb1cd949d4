"""Delivery to a real receiver that fails, hangs and dies, by a notifier that is killed."""

import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stream_app.processes.child_processes import environment
from stream_app.store.database import tables
from stream_app.worker.kafka.broker import free_port
from tests.conftest import NewService
from tests.e2e.service import Service
from tests.e2e.test_health import answer
from tests.notifications.conftest import Start
from tests.notifications.receiver import attempts
from tests.rule_texts import EAGER_TEXT, HEAD
from tests.store.batches import end, turn

pytestmark = pytest.mark.slow

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SESSIONS = 3
FILE = """
targets:
  - name: desk
    kind: webhook
    url: ${WEBHOOK_URL}
    allow: [127.0.0.0/8]
    secret: ${WEBHOOK_SECRET}
    timeout: 1
"""


def sessions(first: int, count: int) -> list[bytes]:
    return [
        event
        for name in range(first, first + count)
        for event in [
            *(turn(seq, session_id=f"s{name}") for seq in range(12)),
            end(session_id=f"s{name}"),
        ]
    ]


def notifiable(service: Service) -> set[str]:
    return {
        row["alert_id"]
        for row in service.rows(tables.alerts)
        if row["state"] in ("firing", "resolved")
    }


def confirmed(service: Service) -> set[str]:
    return {
        row["alert_id"] for row in service.rows(tables.deliveries) if row["state"] == "delivered"
    }


@pytest.mark.timeout(180)
def test_each_transition_is_sent_until_confirmed_and_not_afterwards(
    new_service: NewService, start: Start, tmp_path: Path
) -> None:
    eager = tmp_path / "rules.yaml"
    eager.write_text(HEAD + EAGER_TEXT, "utf-8")
    port, health, log = free_port(), free_port(), tmp_path / "received.jsonl"
    file = tmp_path / "notifications.yaml"
    file.write_text(FILE, "utf-8")
    service = new_service(
        rules=eager,
        notifications=file,
        health_port=health,
    )
    given = service.settings
    service.settings = given.model_copy(update={"health_port": None})  # the notifier listens there
    service.start_worker()
    service.settings = given
    service.send(sessions(0, 1))
    service.wait_for(lambda: len(notifiable(service)) == 2, "the first session has its alerts")
    before = notifiable(service)

    def notifier() -> subprocess.Popen[bytes]:
        return start(
            "tests.impatient",
            "notify",
            **environment(service.settings),
            WEBHOOK_URL=f"http://127.0.0.1:{port}/alerts",
            WEBHOOK_SECRET=SECRET,
        )

    def receiver() -> subprocess.Popen[bytes]:
        plan = ("fail", "refuse", "hang", "cut", "die", "ok")
        module = "tests.notifications.receiver"
        return start(module, "--port", port, "--log", log, "--secret", SECRET, "--attempts", *plan)

    receiving, notifying = receiver(), notifier()
    service.wait_for(
        lambda: service.count(tables.notification_targets) == 1, "the notifier knows its target"
    )
    service.send(sessions(1, SESSIONS))
    service.wait_for(lambda: len(notifiable(service)) == 2 + 2 * SESSIONS, "all alerts are there")
    due = notifiable(service) - before
    killed = 0

    def receiver_kept_up() -> None:
        nonlocal receiving
        if receiving.poll() is not None:
            receiving = receiver()

    def all_confirmed() -> bool:
        nonlocal notifying, killed
        receiver_kept_up()
        if killed < 2 and any(line["does"] == "hang" for line in attempts(log)[-1:]):
            notifying.send_signal(signal.SIGKILL)
            notifying.wait()
            notifying, killed = notifier(), killed + 1
        return confirmed(service) == due

    service.wait_for(all_confirmed, "all are confirmed")
    service.send(sessions(8, 1))

    def later_ones_too() -> bool:
        receiver_kept_up()
        return len(confirmed(service)) == len(due) + 2

    service.wait_for(later_ones_too, "later ones follow")
    service.wait_for(lambda: answer(health, "/readyz")[0] == 200, "nothing is due any more")
    refused = 'rapport_deliveries_total{result="refused",target="desk"}'
    assert refused in answer(health, "/metrics")[1]
    notifying.send_signal(signal.SIGTERM)
    assert notifying.wait(20) == 0

    received = attempts(log)
    assert killed == 2
    assert all(line["signed"] for line in received)
    oks = Counter(str(line["id"]) for line in received if line["does"] == "ok")
    assert set(oks) == notifiable(service) - before
    assert set(oks.values()) == {1}, "nothing comes after the acknowledgement"
    assert Counter(line["does"] for line in received)["die"] == len(oks)
    _check_bodies(received)


def _check_bodies(received: list[dict[str, Any]]) -> None:
    by_group: dict[str, list[Any]] = {}
    for line in received:
        if line["does"] == "ok":
            by_group.setdefault(line["body"]["groupKey"], []).append(line["body"])
    assert len(by_group) == SESSIONS + 1
    for bodies in by_group.values():
        assert {body["status"] for body in bodies} == {"firing", "resolved"}
        assert len({body["alerts"][0]["startsAt"] for body in bodies}) == 1
        assert {body["receiver"] for body in bodies} == {"desk"}
        assert "hard" not in str(bodies), "no word of the transcript"
