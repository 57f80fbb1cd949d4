"""Which alert waits for which, and what a probe is told; webhook and deliveries are fakes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec import structs

from stream_app.notifications import notifier as module
from stream_app.notifications.notifier import Notifier
from stream_app.notifications.webhook import NotTaken, Refused
from stream_app.store.deliveries import DueAlert
from tests.notifications.test_messages import FIRING


class Target:
    """Deliveries and webhook in one; `answers` says what happens to which alert."""

    def __init__(self, *waiting: DueAlert, **answers: Exception) -> None:
        self.waiting = list(waiting)
        self.answers = answers
        self.tried: list[str] = []
        self.during: Any = None

    @contextmanager
    def alone(self) -> Iterator[bool]:
        yield True

    def begin(self) -> None:
        """Known already."""

    def due(self) -> list[DueAlert]:
        return list(self.waiting)

    def send(self, alert: DueAlert) -> None:
        self.tried.append(alert.alert_id)
        if self.during is not None:
            self.during()
        if alert.alert_id in self.answers:
            raise self.answers[alert.alert_id]

    def acknowledged(self, alert: DueAlert) -> None:
        self.waiting.remove(alert)

    def failed(self, alert: DueAlert, problem: str) -> None:
        """It stays due."""


def alert(name: str, attempts: int = 0) -> DueAlert:
    return structs.replace(FIRING, alert_id=name, attempts=attempts)


def of(target: Any) -> Notifier:
    return Notifier(target, target, every=60.0, longest_wait=300.0)


def test_one_that_is_refused_waits_alone_however_often_it_was_tried() -> None:
    target = Target(alert("poison", attempts=5000), alert("good"), poison=Refused("status 400"))
    assert of(target).round() == 1
    assert target.tried == ["poison", "good"]


def test_a_target_that_is_not_well_holds_all_up() -> None:
    target = Target(alert("a"), alert("b"), a=NotTaken("status 500"))
    with pytest.raises(NotTaken):
        of(target).round()
    assert target.tried == ["a"]


def test_a_delivery_that_takes_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HANGS_AFTER", 0.0)
    target = Target(alert("a"))
    notifier = of(target)
    assert notifier.not_alive() == []
    seen: list[list[str]] = []
    target.during = lambda: seen.append(notifier.not_alive())
    notifier.round()
    assert "one delivery has taken" in seen[0][0]


def test_a_stop_ends_the_wait_after_a_failure() -> None:
    notifier = of(Target(alert("a"), a=NotTaken("status 500")))
    running = threading.Thread(target=notifier.run)
    running.start()
    notifier.stop()
    running.join(10)
    assert not running.is_alive()
