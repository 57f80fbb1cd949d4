"""Order of deliveries, suppression by people, and health reports of a notifier."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from prometheus_client import generate_latest

from stream_app.errors import StoreError
from stream_app.notifications import rounds
from stream_app.notifications.notification import DeliveryFailed, Notification
from stream_app.notifications.notifier_group import NotifierGroup, deliveries_counter
from stream_app.store.database import tables
from stream_app.store.stream import schema
from tests.notifications.simulation import Simulation, target
from tests.store.databases import open_store
from tests.store.reading import rows


def deliveries(desk: Simulation) -> dict[str, tuple[str, str | None]]:
    return {
        row["alert_id"]: (row["state"], row["problem"])
        for row in rows(desk.store, tables.deliveries)
    }


def mute(desk: Simulation, **changes: Any) -> None:
    row = {
        "mute_id": str(changes),
        "until": desk.now + timedelta(hours=1),
        "person": "p",
        "at": desk.now,
        "reason": "known-issue",
        **changes,
    }
    with desk.store.transaction() as connection:
        connection.execute(sa.insert(tables.mutes).values(row))


def record_action(desk: Simulation, name: str, kind: str) -> None:
    row = {
        "action_id": f"{name}{kind}",
        "episode_id": f"episode {name}",
        "session_id": name,
        "kind": kind,
        "reason": "supervised",
        "note": "a private note",
        "person": "p",
        "at": desk.now,
    }
    with desk.store.transaction() as connection:
        connection.execute(sa.insert(tables.alert_actions).values(row))


def test_a_rejected_notification_delays_no_others() -> None:
    desk = Simulation(target())
    desk.add("poison")
    desk.add("good")
    desk.plan = ["refuse"]
    desk.round()
    assert desk.sent_separately() == ["good"]
    desk.round()
    assert desk.sent_separately() == ["good"], "not at once"
    desk.advance(minutes=1)
    assert desk.sent_separately() == ["good", "poison"]


def test_after_a_failure_a_target_starts_with_the_fewest_attempts() -> None:
    desk = Simulation(target())
    desk.add("a")
    desk.add("b")
    desk.plan = ["fail"]
    with pytest.raises(DeliveryFailed):
        desk.notifier.round()
    assert desk.arrived == []
    desk.round()
    assert desk.sent_separately() == ["b", "a"]


def test_a_resolved_alert_waits_for_its_firing() -> None:
    desk = Simulation(target())
    desk.add("a")
    desk.add("a", "resolved")
    desk.plan = ["refuse"]
    desk.round()
    assert desk.arrived == []
    desk.advance(minutes=1)
    assert [n.notification_id for _, n in desk.arrived] == ["a/firing", "a/resolved"]


@pytest.mark.parametrize(
    "which", [{}, {"rule": "low-empathy-risk"}, {"session_id": "a"}, {"team": "nights"}]
)
def test_neither_a_muted_alert_nor_its_resolution_is_sent(which: dict[str, str]) -> None:
    desk = Simulation(target())
    with desk.store.transaction() as connection:
        connection.execute(sa.insert(tables.sessions).values(session_id="a", team="nights"))
    mute(desk, **which)
    mute(desk, rule="another")
    desk.add("a")
    desk.round()
    desk.advance(minutes=30)
    desk.add("a", "resolved")
    desk.advance(hours=2)
    assert desk.arrived == []
    assert deliveries(desk) == {
        "a/firing": ("muted", "muted"),
        "a/resolved": ("muted", "its firing was not sent"),
    }


def test_an_alert_that_still_fires_when_its_mute_ends_is_sent_then() -> None:
    desk = Simulation(target())
    began = desk.now
    mute(desk, rule="low-empathy-risk")
    mute(desk, session_id="a", until=desk.now + timedelta(minutes=90))
    for name in "abc":
        desk.add(name)
    record_action(desk, "c", "acknowledge")
    desk.round()
    assert desk.arrived == []
    desk.advance(hours=3)
    minutes = [(when - began).total_seconds() / 60 for when, _ in desk.arrived]
    assert list(zip(desk.sent_separately(), minutes, strict=True)) == [("b", 60), ("a", 90)]
    assert deliveries(desk)["c/firing"] == ("acknowledged", "acknowledged: supervised")
    desk.add("b", "resolved")
    desk.round()
    assert desk.sent_separately() == ["b", "a", "b"]


def test_a_mute_that_is_ended_early_is_over() -> None:
    desk = Simulation(target())
    mute(desk, ended_at=desk.now + timedelta(minutes=5))
    desk.add("a")
    desk.advance(minutes=4)
    assert desk.arrived == []
    desk.advance(minutes=1)
    assert desk.sent_separately() == ["a"]


@pytest.mark.parametrize(
    "which",
    [
        {"rule": "another"},
        {"session_id": "b"},
        {"team": "nights"},
        {"until": Simulation(target()).now},
        {"ended_at": Simulation(target()).now},
    ],
)
def test_other_and_expired_mutes_do_not_suppress_the_alert(which: dict[str, Any]) -> None:
    desk = Simulation(target())
    mute(desk, **which)
    desk.add("a")
    desk.round()
    assert desk.sent_separately() == ["a"]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("acknowledge", "acknowledged: supervised"), ("resolve", "resolved manually: supervised")],
)
def test_alerts_handled_by_a_person_before_sending_are_not_sent(kind: str, reason: str) -> None:
    desk = Simulation(target())
    desk.add("a")
    desk.add("b")
    record_action(desk, "a", kind)
    record_action(desk, "b", "note")
    desk.round()
    assert desk.sent_separately() == ["b"]
    assert deliveries(desk)["a/firing"] == ("acknowledged", reason)


def test_a_sent_alerts_resolution_is_sent_regardless_of_later_actions() -> None:
    desk = Simulation(target())
    desk.add("a")
    desk.round()
    record_action(desk, "a", "acknowledge")
    mute(desk)
    desk.add("a", "resolved")
    desk.round()
    assert desk.sent_separately() == ["a", "a"]


def test_alerts_acknowledged_or_muted_while_held_are_left_out_of_the_digest() -> None:
    desk = Simulation(target(hourly_cap=1))
    for name in "abcd":
        desk.add(name)
    desk.round()
    record_action(desk, "b", "acknowledge")
    mute(desk, session_id="c", until=desk.now + timedelta(hours=9))
    desk.add("c", "resolved")
    desk.advance(hours=1)
    assert desk.digests() == [["d"]]
    assert {alert: state for alert, (state, _) in deliveries(desk).items()} == {
        "a/firing": "delivered",
        "b/firing": "acknowledged",
        "c/firing": "muted",
        "c/resolved": "muted",
        "d/firing": "digested",
    }


def test_filters_apply_and_a_resolved_alert_follows_its_firing() -> None:
    desk = Simulation(target(severities=["critical"]))
    desk.add("a")
    desk.add("a", "resolved")
    desk.add("b", severity="critical")
    desk.round()
    assert desk.sent_separately() == ["b"]
    assert deliveries(desk)["a/resolved"][0] == "filtered"
    desk.target = target(severities=["info"])
    desk.restart()
    desk.add("b", "resolved", severity="critical")
    desk.round()
    assert desk.sent_separately() == ["b", "b"]


def test_a_resolution_is_not_sent_if_its_firing_is_older_than_the_target() -> None:
    desk = Simulation(target())
    store = desk.store
    with store.transaction() as connection:
        connection.execute(sa.delete(tables.notification_targets))
    desk.add("a")
    later = Simulation(target(), store)
    later.add("a", "resolved")
    later.add("b")
    later.round()
    assert later.sent_separately() == ["b"]


def test_a_hanging_delivery_is_reported_by_the_health_probe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rounds, "HANGS_AFTER", 0.0)
    desk = Simulation(target())
    desk.add("a")
    assert desk.notifier.not_alive() == []
    seen: list[list[str]] = []
    send = desk.send
    desk.send = lambda notification: (seen.append(desk.notifier.not_alive()), send(notification))  # type: ignore[method-assign,assignment]
    desk.notifier.round()
    assert "one delivery has taken" in seen[0][0]


class FakeNotifier:
    """A fake notifier for `NotifierGroup`."""

    def __init__(self, name: str, problem: Exception | None = None) -> None:
        self.name = name
        self.problem = problem
        self.ended = threading.Event()

    def run(self) -> None:
        if self.problem is not None:
            raise self.problem
        self.ended.wait(20)

    def stop(self) -> None:
        self.ended.set()

    def not_alive(self) -> list[str]:
        return []

    def not_ready(self) -> list[str]:
        return ["status 500"]


def test_a_failing_notifier_stops_all_and_its_error_is_raised() -> None:
    notifiers: Any = [FakeNotifier("a"), FakeNotifier("b", StoreError("no tables"))]
    with pytest.raises(StoreError, match="no tables"):
        NotifierGroup(notifiers, deliveries_counter()).run()
    assert notifiers[0].ended.is_set()


def test_the_group_answers_for_each_target_by_name() -> None:
    counter = deliveries_counter()
    counter.labels("a", "held").inc(2)
    notifiers: Any = [FakeNotifier("a"), FakeNotifier("b")]
    group = NotifierGroup(notifiers, counter)
    assert group.names == ["a", "b"]
    assert group.not_ready() == ["a: status 500", "b: status 500"]
    assert b'rapport_deliveries_total{result="held",target="a"} 2.0' in generate_latest(
        group.registry
    )


def test_a_stop_ends_the_wait_after_a_failure() -> None:
    desk = Simulation(target())
    desk.notifier.round = lambda: (_ for _ in ()).throw(DeliveryFailed("status 500"))  # type: ignore[method-assign]
    group = NotifierGroup([desk.notifier], deliveries_counter())
    running = threading.Thread(target=group.run)
    running.start()
    group.stop()
    running.join(10)
    assert not running.is_alive()


class Fragile(Simulation):
    """A channel with an unexpected error for one session."""

    def send(self, notification: Notification) -> None:
        if any(alert.session_id == "poison" for alert in notification.alerts):
            raise OverflowError("date value out of range")
        super().send(notification)


def test_an_error_of_one_delivery_delays_only_that_delivery() -> None:
    desk = Fragile(target())
    for name in ("a", "poison", "b"):
        desk.add(name)
    desk.round()
    assert desk.sent_separately() == ["a", "b"]
    assert deliveries(desk)["poison/firing"] == ("due", "sending failed: OverflowError")
    attempts = [row["attempts"] for row in rows(desk.store, tables.deliveries)]
    desk.round()
    assert [row["attempts"] for row in rows(desk.store, tables.deliveries)] == attempts, "it waits"
    desk.add("c")
    desk.advance(minutes=2)
    assert desk.sent_separately() == ["a", "b", "c"]


def test_a_failing_digest_does_not_block_other_alerts() -> None:
    desk = Fragile(target(hourly_cap=1, digest_every=timedelta(minutes=5), critical_passes=True))
    desk.add("first")
    desk.round()
    desk.add("poison")
    desk.round()
    desk.advance(hours=2)
    desk.add("urgent", severity="critical")
    desk.round()
    assert "urgent" in desk.sent_separately()


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "Pacific/Honolulu"])
def test_alerts_at_the_ends_of_the_calendar_are_sent_in_any_database_time_zone(
    server: Any, zone: str
) -> None:
    url = server.new_database()
    engine = sa.create_engine(url.replace("postgresql", "postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(sa.text(f"ALTER DATABASE {engine.url.database} SET TimeZone = '{zone}'"))
    engine.dispose()
    store = open_store(url)
    schema.upgrade(store)
    desk = Simulation(target(), store)
    for name, at in (
        ("last", datetime(9999, 12, 31, 23, 59, 30, tzinfo=UTC)),
        ("first", datetime(1, 1, 1, 0, 0, 30, tzinfo=UTC)),
        ("now", desk.now),
    ):
        desk.add(name, occurred_at=at)
    desk.round()
    store.close()
    assert set(desk.sent_separately()) == {"last", "first", "now"}
