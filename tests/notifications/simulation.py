"""A simulated target, with a manual clock and a channel that follows a plan.

The channel's behaviours:

    ok       the notification is confirmed
    refuse   it is rejected
    fail     it does not arrive, with an error
    lost     it does not arrive, without an answer
    slow     it arrives, without an answer
    die      the notifier dies before sending
    forget   the notifier dies after sending, before recording it
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from prometheus_client import Counter
from pydantic import SecretStr

from stream_app.notifications.notification import (
    DeliveryFailed,
    DeliveryRejected,
    DeliveryUnconfirmed,
    Notification,
)
from stream_app.notifications.notifier import Notifier
from stream_app.notifications.targets import Target
from stream_app.store.alerts.deliveries import Deliveries, DueAlert
from stream_app.store.stream.repository import Store
from tests.notifications.alerts import BEGAN, add, memory_store

DOES = ("ok", "refuse", "fail", "lost", "slow", "die", "forget")


class Died(BaseException):
    """The process died here."""


def target(**settings: Any) -> Target:
    """A target that is never contacted."""
    return Target.model_construct(
        name="desk", kind="webhook", url=SecretStr("http://localhost"), **settings
    )


class Simulation:
    """One notifier, its database and its target."""

    def __init__(self, target: Target, store: Store | None = None) -> None:
        self.store = store or memory_store()
        self.target = target
        self.now = BEGAN
        self.plan: list[str] = []
        self.arrived: list[tuple[datetime, Notification]] = []
        self.claims: dict[str, set[str]] = {}
        self.added: dict[str, datetime] = {}
        self.restart()

    def restart(self) -> None:
        simulation = self

        class Recorded(Deliveries):
            def claim(self, found: Sequence[DueAlert], notification_id: str, *a: Any, **b: Any):
                simulation.claims[notification_id] = {alert.alert_id for alert in found}
                super().claim(found, notification_id, *a, **b)

        counter = Counter("d", "d", ["target", "result"], registry=None)
        self.deliveries = Recorded(self.store, self.target.name)
        self.notifier = Notifier(
            self.target, self.deliveries, self, counter, lambda: self.now, 1.0, 300.0
        )
        self.deliveries.register_target(self.now)

    def send(self, notification: Notification) -> None:
        does = self.plan.pop(0) if self.plan else "ok"
        if does in {"ok", "slow", "forget"}:
            self.arrived.append((self.now, notification))
        match does:
            case "refuse":
                raise DeliveryRejected("status 400")
            case "fail":
                raise DeliveryFailed("status 500")
            case "lost" | "slow":
                raise DeliveryUnconfirmed("no answer")
            case "die" | "forget":
                raise Died

    def add(self, name: str, state: str = "firing", **changes: Any) -> None:
        self.added[add(self.store, name, state, self.now, **changes)] = self.now

    def round(self) -> None:
        """Run one round and ignore failures; restart the notifier after a death."""
        try:
            self.notifier.round()
        except DeliveryFailed:
            pass
        except Died:
            self.restart()

    def advance(self, **time: float) -> None:
        """Advance the clock, with a round every minute."""
        end = self.now + timedelta(**time)
        while self.now < end:
            self.now = min(end, self.now + timedelta(minutes=1))
            self.round()

    def sent_separately(self) -> list[str]:
        """Sessions of alerts that arrived separately, in order."""
        return [n.alerts[0].session_id for _, n in self.arrived if not n.is_digest]

    def digests(self) -> list[list[str]]:
        """Sessions of each digest, in order."""
        return [[a.session_id for a in n.alerts] for _, n in self.arrived if n.is_digest]

    def times_sent(self, alert_id: str) -> int:
        """Number of different arrived notifications with this transition."""
        identities = {n.notification_id for _, n in self.arrived}
        return sum(alert_id in self.claims[identity] for identity in identities)

    def max_in_an_hour(self) -> int:
        """The maximum number of different notifications in any hour."""
        return max(
            (
                len(
                    {
                        n.notification_id
                        for other, n in self.arrived
                        if at - timedelta(hours=1) < other <= at
                    }
                )
                for at, _ in self.arrived
            ),
            default=0,
        )
