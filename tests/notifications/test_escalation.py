"""Escalations: due steps are sent once, to who is on call, until somebody answers.

The notifiers are restarted before every round, so whatever they remember is in the database.
"""

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from prometheus_client import Counter

from stream_app.notifications.alertmanager import body
from stream_app.notifications.escalation import Escalation, EscalationPath, EscalationStep
from stream_app.notifications.escalation_planner import EscalationPlanner
from stream_app.notifications.escalation_sender import EscalationSender
from stream_app.notifications.message_text import text, title
from stream_app.notifications.notification import (
    DeliveryFailed,
    DeliveryRejected,
    DeliveryUnconfirmed,
    Notification,
)
from stream_app.notifications.rota import Rota, WeeklyShift
from stream_app.notifications.targets import Chosen
from stream_app.store.alerts.escalations import Escalations
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure
from tests.notifications.alerts import BEGAN, add, memory_store
from tests.store.reading import rows

EVERY_DAY = frozenset(range(7))
NIGHTS = Rota(
    "duty",
    ZoneInfo("UTC"),
    (
        WeeklyShift("anna", EVERY_DAY, time(8), time(20)),
        WeeklyShift("ben", EVERY_DAY, time(20), time(8)),
    ),
)
STEPS = (
    EscalationStep(timedelta(minutes=5), ("duty",)),
    EscalationStep(timedelta(minutes=15), ("duty", "head")),
)


class Died(BaseException):
    """The process died here."""


class Desk:
    """The notifiers of all targets, with a manual clock; ``plan`` as in ``simulation``."""

    def __init__(self, *paths: EscalationPath, rota: Rota = NIGHTS) -> None:
        self.store = memory_store()
        self.escalations = Escalations(self.store)
        self.now = BEGAN
        self.targets = frozenset({"anna", "ben", "head"})
        self.paths = paths or (EscalationPath(Chosen(severities=["critical"]), STEPS),)
        self.rotas = {"duty": rota}
        self.arrived: list[tuple[int, str, Notification]] = []
        self.plan: list[str] = []
        self.before_sending: Callable[[], None] = lambda: None

    def add(self, name: str = "s", state: str = "firing", **changes: Any) -> None:
        add(self.store, name, state, self.now, **{"severity": "critical", **changes})

    def act(self, kind: str, name: str = "s") -> None:
        row = {
            "action_id": f"{kind} {self.now}",
            "episode_id": f"episode {name}",
            "session_id": name,
            "kind": kind,
            "person": "sue",
            "at": self.now,
        }
        with self.store.transaction() as connection:
            connection.execute(sa.insert(tables.alert_actions).values(row))

    def round(self) -> None:
        """One round of freshly started notifiers."""
        counter = Counter("d", "d", ["target", "result"], registry=None)
        self.counter = counter
        plan = Escalation(self.paths, self.rotas, self.targets)
        now = lambda: self.now  # noqa: E731
        EscalationPlanner(plan, self.escalations, counter, now, 1.0, 60.0).round()
        self.before_sending()
        for target in sorted(self.targets):
            sender = EscalationSender(
                target, self.escalations, _Channel(self, target), counter, now, 1.0, 60.0
            )
            try:
                sender.round()
            except (DeliveryFailed, Died):
                continue

    def advance(self, minutes: int) -> None:
        for _ in range(minutes):
            self.now += timedelta(minutes=1)
            self.round()

    def told(self) -> list[tuple[int, str]]:
        """Minutes since the start, and the target, of each arrived message."""
        return [(minute, target) for minute, target, _ in self.arrived]

    def states(self) -> dict[tuple[int, str], str]:
        return {
            (row["step"], row["recipient"]): row["state"]
            for row in rows(self.store, tables.escalations)
        }


class _Channel:
    def __init__(self, desk: Desk, target: str) -> None:
        self.desk = desk
        self.target = target

    def send(self, notification: Notification) -> None:
        desk = self.desk
        does = desk.plan.pop(0) if desk.plan else "ok"
        if does in {"ok", "slow", "forget"}:
            minute = int((desk.now - BEGAN).total_seconds() // 60)
            desk.arrived.append((minute, self.target, notification))
        match does:
            case "refuse":
                raise DeliveryRejected("status 400")
            case "fail":
                raise DeliveryFailed("status 500")
            case "slow":
                raise DeliveryUnconfirmed("no answer")
            case "error":
                raise OverflowError
            case "die" | "forget":
                raise Died


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_each_step_is_sent_once_after_its_time(desk: Desk) -> None:
    desk.add()
    desk.round()
    desk.advance(60)
    assert desk.told() == [(5, "anna"), (15, "anna"), (15, "head")]
    assert set(desk.states().values()) == {"sent"}


def test_alerts_outside_the_filter_are_not_escalated(desk: Desk) -> None:
    desk.add(severity="warning")
    desk.advance(60)
    assert desk.told() == []
    assert desk.states() == {}


def test_the_first_path_that_fits_counts() -> None:
    rule = EscalationPath(
        Chosen(rules=["low-empathy-risk"]), (EscalationStep(timedelta(minutes=1), ("head",)),)
    )
    desk = Desk(rule, EscalationPath(Chosen(), STEPS))
    desk.add("s")
    desk.add("t", rule="another")
    desk.round()
    desk.advance(10)
    assert [(m, t, n.alerts[0].session_id) for m, t, n in desk.arrived] == [
        (1, "head", "s"),
        (5, "anna", "t"),
    ]


@pytest.mark.parametrize("kind", ["acknowledge", "resolve"])
def test_an_answer_stops_the_steps_that_are_not_sent_yet(desk: Desk, kind: str) -> None:
    desk.add()
    desk.round()
    desk.advance(10)
    desk.act("note")
    desk.act(kind)
    desk.advance(20)
    assert desk.told() == [(5, "anna")]
    assert desk.states() == {
        (1, "duty"): "sent",
        (2, "duty"): "acknowledged",
        (2, "head"): "acknowledged",
    }


def test_an_answer_at_the_very_moment_of_the_step_stops_it(desk: Desk) -> None:
    desk.add()
    desk.round()
    desk.advance(4)
    desk.now += timedelta(minutes=1)
    desk.act("acknowledge")
    desk.round()
    assert desk.told() == []


def test_an_answer_between_planning_and_sending_stops_the_step(desk: Desk) -> None:
    desk.add()
    desk.round()
    desk.now += timedelta(minutes=5)
    desk.before_sending = lambda: desk.act("acknowledge")
    desk.round()
    assert desk.told() == []
    assert desk.states()[1, "duty"] == "acknowledged"


def test_a_resolved_alert_is_escalated_no_further(desk: Desk) -> None:
    desk.add()
    desk.round()
    desk.advance(6)
    desk.add(state="resolved")
    desk.advance(20)
    assert desk.told() == [(5, "anna")]
    assert desk.states()[2, "head"] == "resolved"


def test_a_muted_alert_is_not_escalated(desk: Desk) -> None:
    desk.add()
    desk.round()
    mute = {"mute_id": "m", "rule": "low-empathy-risk", "person": "sue", "at": desk.now}
    with desk.store.transaction() as connection:
        connection.execute(
            sa.insert(tables.mutes).values(until=desk.now + timedelta(minutes=10), **mute)
        )
    desk.advance(20)
    assert desk.told() == [(15, "anna"), (15, "head")], "the mute has ended by then"
    assert desk.states()[1, "duty"] == "muted"


def test_an_escalation_begins_when_the_mute_ends_that_the_alert_fired_in(desk: Desk) -> None:
    mute = {"mute_id": "m", "rule": "low-empathy-risk", "person": "sue", "at": desk.now}
    with desk.store.transaction() as connection:
        connection.execute(
            sa.insert(tables.mutes).values(until=desk.now + timedelta(minutes=10), **mute)
        )
    desk.add()
    desk.add("t")
    desk.round()
    desk.advance(4)
    desk.add("t", "resolved")
    desk.advance(30)
    assert desk.told() == [(15, "anna"), (25, "anna"), (25, "head")]


def test_the_shift_at_the_time_of_the_step_counts(desk: Desk) -> None:
    desk.now = datetime(2026, 1, 5, 19, 50, tzinfo=UTC)
    desk.add()
    desk.round()
    desk.advance(15)
    assert [target for _, target in desk.told()] == ["anna", "ben", "head"]


def test_a_step_waits_until_somebody_is_on_call_and_the_next_steps_do_not() -> None:
    days = Rota("duty", ZoneInfo("UTC"), (WeeklyShift("anna", EVERY_DAY, time(11), time(20)),))
    desk = Desk(rota=days)
    desk.add()
    desk.round()
    desk.advance(5)
    [row] = [row for row in rows(desk.store, tables.escalations) if row["step"] == 1]
    assert (row["state"], row["problem"]) == ("waiting", "nobody on call")
    assert desk.counter.labels("duty", "nobody_on_call")._value.get() == 1
    desk.advance(1)
    assert desk.counter.labels("duty", "nobody_on_call")._value.get() == 0, "reported once"
    desk.advance(60)
    assert desk.told() == [(15, "head"), (60, "anna"), (60, "anna")]


def test_overdue_steps_are_sent_after_the_notifier_was_stopped(desk: Desk) -> None:
    desk.add()
    desk.round()
    desk.now += timedelta(hours=3)
    desk.round()
    desk.round()
    assert desk.told() == [(180, "anna"), (180, "anna"), (180, "head")]


def test_the_time_counts_from_when_the_notifier_first_saw_the_alert(desk: Desk) -> None:
    """An alert's own time is its producer's: here it is a day old, or in the future."""
    desk.add("old", occurred_at=desk.now - timedelta(days=1))
    desk.add("early", occurred_at=desk.now + timedelta(minutes=4))
    desk.round()
    desk.advance(5)
    assert desk.told() == [(5, "anna"), (5, "anna")]


@pytest.mark.parametrize("does", ["fail", "refuse", "error", "die"])
def test_a_step_that_did_not_arrive_is_sent_again(desk: Desk, does: str) -> None:
    desk.add()
    desk.round()
    desk.plan = [does]
    desk.advance(6)
    assert desk.told() == [(6, "anna")]
    desk.advance(4)
    assert desk.told() == [(6, "anna")]


@pytest.mark.parametrize("does", ["slow", "forget"])
def test_a_step_that_may_have_arrived_is_repeated_under_the_same_id(desk: Desk, does: str) -> None:
    desk.add()
    desk.round()
    desk.plan = [does]
    desk.advance(6)
    assert len({message.notification_id for _, _, message in desk.arrived}) == 1


def test_a_failing_target_does_not_delay_others(desk: Desk) -> None:
    desk.add()
    desk.round()
    desk.advance(14)
    desk.plan = ["fail"]
    desk.advance(1)
    assert desk.told() == [(5, "anna"), (15, "head")]


def test_recipients_that_left_the_file_lose_no_step_of_others(desk: Desk) -> None:
    """A removed target's due step goes to who is on call; a removed rota's steps end."""
    desk.now = BEGAN.replace(hour=7, minute=50)
    desk.add()
    desk.round()
    desk.plan = ["fail"]
    desk.advance(5)
    desk.targets = frozenset({"anna", "head"})
    desk.rotas = {"duty": Rota("duty", ZoneInfo("UTC"), NIGHTS.shifts[:1])}
    desk.advance(5)
    assert [target for _, target in desk.told()] == ["anna"], "since 8:00"
    desk.rotas = {}
    desk.advance(5)
    assert desk.states() == {(1, "duty"): "sent", (2, "duty"): "removed", (2, "head"): "sent"}


def test_a_changed_path_applies_to_later_alerts(desk: Desk) -> None:
    desk.add("s")
    desk.round()
    desk.paths = (EscalationPath(Chosen(), (EscalationStep(timedelta(minutes=1), ("head",)),)),)
    desk.add("t")
    desk.advance(5)
    assert desk.told() == [(2, "head"), (5, "anna")]


def test_two_notifiers_plan_a_step_once(desk: Desk) -> None:
    """At the change of a shift, both would choose another target."""
    desk.add()
    desk.round()
    desk.now += timedelta(minutes=5)
    [step] = desk.escalations.waiting(desk.now)
    desk.escalations.assign(step, "anna")
    desk.escalations.assign(step, "ben")
    assert desk.escalations.to_send("ben") == []
    assert len(desk.escalations.to_send("anna")) == 1
    desk.escalations.begin(step.alert, [])
    desk.round()
    assert desk.told() == [(5, "anna")]


def test_an_erased_or_hidden_session_is_escalated_no_further(desk: Desk) -> None:
    for name in "st":
        with desk.store.transaction() as connection:
            connection.execute(sa.insert(tables.sessions).values(session_id=name, hidden=False))
        desk.add(name)
    desk.round()
    with desk.store.transaction() as connection:
        connection.execute(
            sa.update(tables.sessions)
            .where(tables.sessions.c.session_id == "s")
            .values(hidden=True)
        )
    erasure.erase(desk.store, ["t"], desk.now)
    desk.advance(20)
    assert desk.told() == []
    assert {row["session_id"] for row in rows(desk.store, tables.escalations)} == {"s"}


def test_a_message_says_that_nobody_answered_and_has_the_protocol(desk: Desk) -> None:
    desk.add(protocol="Call the duty manager.\nThen take over.")
    desk.round()
    desk.advance(5)
    [(_, _, message)] = desk.arrived
    assert title(message) == "Rapport: low-empathy-risk (critical) not acknowledged, session s"
    words = text(message, "")
    assert "Escalation: step 1 (duty): nobody has acknowledged this alert" in words
    assert "Protocol:\nCall the duty manager.\nThen take over.\n\nEstimated by a model" in words
    annotations = body(message, "anna", "")["alerts"][0]["annotations"]
    assert annotations["escalation"].startswith("step 1 (duty)")
    assert annotations["protocol"] == "Call the duty manager.\nThen take over."
