"""Hourly cap and digests: what is sent when, and that nothing is lost or sent twice."""

from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from stream_app.contracts.scores import AlertState
from stream_app.notifications.rate_limit import QuietHours
from stream_app.notifications.targets import Quiet
from stream_app.store.database import tables
from tests.notifications.simulation import DOES, Simulation, target
from tests.store.reading import rows

MINUTES = st.integers(0, 90)


def states(simulation: Simulation) -> dict[str, str]:
    return {row["alert_id"]: row["state"] for row in rows(simulation.store, tables.deliveries)}


def test_alerts_over_the_cap_are_sent_in_a_digest_when_the_window_allows() -> None:
    desk = Simulation(target(hourly_cap=2))
    for name in "abcde":
        desk.add(name)
    desk.round()
    assert (desk.sent_separately(), desk.digests()) == (["a", "b"], [])
    desk.advance(minutes=59)
    assert desk.digests() == []
    desk.advance(minutes=1)
    assert desk.digests() == [["c", "d", "e"]]


def test_half_hourly_digests_reserve_two_of_six_notifications() -> None:
    desk = Simulation(target(hourly_cap=6, digest_every=timedelta(minutes=30)))
    for name in "abcdefg":
        desk.add(name)
    desk.round()
    assert desk.sent_separately() == ["a", "b", "c", "d"]
    desk.advance(minutes=28)
    desk.add("h")
    desk.advance(minutes=1)
    assert desk.digests() == []
    desk.advance(minutes=1)
    assert desk.digests() == [["e", "f", "g", "h"]]


def test_a_cap_of_one_with_an_hourly_digest_sends_only_digests() -> None:
    desk = Simulation(target(hourly_cap=1, digest_every=timedelta(hours=1)))
    desk.add("a")
    desk.advance(minutes=10)
    desk.add("b")
    desk.advance(minutes=60)
    assert (desk.sent_separately(), desk.digests()) == ([], [["a", "b"]])


def test_an_alert_fired_in_a_digest_is_resolved_in_a_digest() -> None:
    desk = Simulation(target(hourly_cap=1))
    desk.add("a")
    desk.add("b")
    desk.round()
    desk.advance(minutes=60)
    assert (desk.sent_separately(), desk.digests()) == (["a"], [["b"]])
    desk.advance(minutes=70)
    desk.add("b", "resolved")
    desk.advance(minutes=59)
    assert len(desk.arrived) == 2, "there is room, but it does not come by itself"
    desk.advance(minutes=2)
    assert desk.digests() == [["b"], ["b"]]


def test_an_alert_resolved_while_held_is_one_resolved_line() -> None:
    desk = Simulation(target(hourly_cap=1))
    desk.add("a")
    desk.add("b")
    desk.round()
    desk.add("b", "resolved")
    desk.advance(minutes=60)
    [digest] = [n for _, n in desk.arrived if n.is_digest]
    assert [alert.state for alert in digest.alerts] == [AlertState.RESOLVED]
    assert set(states(desk).values()) == {"delivered", "digested"}


def test_an_alert_fired_separately_is_resolved_separately() -> None:
    desk = Simulation(target(hourly_cap=2))
    desk.add("a")
    desk.add("a", "resolved")
    desk.round()
    assert desk.sent_separately() == ["a", "a"]


def test_critical_alerts_bypass_the_cap_if_configured() -> None:
    desk = Simulation(target(hourly_cap=1, critical_passes=True))
    for name in "abc":
        desk.add(name, severity="critical")
    desk.add("d")
    desk.add("e")
    desk.round()
    assert desk.sent_separately() == ["a", "b", "c", "d"]
    capped = Simulation(target(hourly_cap=1))
    capped.add("a", severity="critical")
    capped.add("b", severity="critical")
    capped.round()
    assert capped.sent_separately() == ["a"]


def test_quiet_hours_hold_until_they_end() -> None:
    berlin = ZoneInfo("Europe/Berlin")  # 10:00 UTC is 11:00 in Berlin in January
    quiet = Quiet.model_construct(begin=time(10, 30), end=time(12, 0), zone=berlin)
    desk = Simulation(target(quiet_hours=quiet, critical_passes=True))
    desk.add("a")
    desk.add("b", severity="critical")
    desk.advance(minutes=59)
    assert (desk.sent_separately(), desk.digests()) == (["b"], [])
    desk.advance(minutes=1)
    assert desk.digests() == [["a"]]


@pytest.mark.parametrize(
    ("begin", "end", "held"),
    [("22:00", "07:00", [0, 6, 22, 23]), ("09:00", "12:00", [9, 10, 11]), ("03:00", "03:00", [])],
)
def test_quiet_hours_may_cross_midnight(begin: str, end: str, held: list[int]) -> None:
    limit = target(
        quiet_hours=Quiet.model_validate({"from": begin, "to": end, "zone": "UTC"})
    ).rate_limit
    day = Simulation(target()).now.replace(hour=0)
    assert limit.quiet is not None
    asked = [hour for hour in range(24) if limit.quiet.contains(day + timedelta(hours=hour))]
    assert set(held) <= set(asked)
    assert len(asked) == {"22:00": 9, "09:00": 3, "03:00": 0}[begin]


@pytest.mark.parametrize(
    ("day", "begin", "end", "minutes"),
    [
        ("2026-10-24", "01:15", "02:45", [(75, 165)]),
        ("2026-10-24", "22:00", "07:00", [(-120, 480)]),
        ("2026-10-24", "02:30", "03:30", [(150, 270)]),
        ("2027-03-27", "01:15", "02:45", [(75, 165)]),
        ("2027-03-27", "22:00", "07:00", [(-120, 360)]),
    ],
)
def test_quiet_hours_are_one_span_when_the_clocks_change(
    day: str, begin: str, end: str, minutes: list[tuple[int, int]]
) -> None:
    """Counted in minutes that pass from the midnight before the change."""
    berlin = ZoneInfo("Europe/Berlin")
    quiet = QuietHours(time.fromisoformat(begin), time.fromisoformat(end), berlin)
    midnight = (datetime.fromisoformat(day) + timedelta(days=1)).replace(tzinfo=berlin)
    start = midnight.astimezone(UTC)
    held = [
        minute
        for minute in range(-180, 720, 15)
        if quiet.contains(start + timedelta(minutes=minute))
    ]
    assert held == [minute for first, last in minutes for minute in range(first, last, 15)]


def test_a_rejected_digest_does_not_block_other_alerts() -> None:
    desk = Simulation(target(hourly_cap=2))
    for name in "abc":
        desk.add(name)
    desk.round()
    desk.advance(minutes=59)
    desk.plan = ["refuse"]
    desk.advance(minutes=1)
    assert desk.digests() == []
    desk.advance(minutes=10)
    assert desk.digests() == [["c"]]


def test_an_unconfirmed_notification_is_retried_under_the_same_id() -> None:
    desk = Simulation(target(hourly_cap=1))
    desk.add("a")
    desk.plan = ["slow", "forget", "ok"]
    desk.add("b")
    desk.round()
    desk.advance(minutes=5)
    assert {n.notification_id for _, n in desk.arrived} == {"a/firing"}
    assert states(desk) == {"a/firing": "delivered", "b/firing": "held"}


@pytest.mark.parametrize("later", ["fail", "refuse", "die"])
def test_an_unconfirmed_digest_is_resent_unchanged(later: str) -> None:
    desk = Simulation(target(hourly_cap=1))
    for name in "abc":
        desk.add(name)
    desk.round()
    desk.now += timedelta(hours=1)
    desk.plan = ["slow", later]
    desk.round()
    desk.add("d")
    desk.round()
    desk.advance(minutes=5)
    assert desk.digests() == [["b", "c"], ["b", "c"]]
    assert len({n.notification_id for _, n in desk.arrived if n.is_digest}) == 1
    desk.advance(hours=1)
    assert desk.digests()[2:] == [["d"]]


def test_a_failed_notification_does_not_count_towards_the_cap() -> None:
    desk = Simulation(target(hourly_cap=1))
    desk.plan = ["fail", "refuse", "fail"]
    desk.add("a")
    desk.advance(minutes=10)
    assert desk.sent_separately() == ["a"]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("time"), MINUTES),
        st.tuples(st.just("fire"), st.sampled_from(["info", "warning", "critical"])),
        st.tuples(st.just("resolve"), st.integers(0, 9)),
        st.tuples(st.just("plan"), st.lists(st.sampled_from(DOES), max_size=4)),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=25,
)
limits: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"hourly_cap": 1},
        {"hourly_cap": 3},
        {"hourly_cap": 4, "digest_every": timedelta(minutes=20)},
        {"hourly_cap": 2, "digest_every": timedelta(minutes=45)},
        {"hourly_cap": 1, "digest_every": timedelta(hours=1)},
    ]
)


def played(limit: dict[str, Any], story: list[tuple[str, Any]]) -> Simulation:
    """Play a story of alerts, time and failures, then a day without failures."""
    desk = Simulation(target(**limit))
    firing: list[str] = []
    for step, value in story:
        match step:
            case "time":
                desk.now += timedelta(minutes=value)
            case "fire":
                firing.append(f"s{len(desk.added)}")
                desk.add(firing[-1], severity=value)
            case "resolve" if firing:
                desk.add(firing.pop(value % len(firing)), "resolved")
            case "plan":
                desk.plan = list(value)
            case "restart":
                desk.restart()
        desk.round()
    desk.plan = []
    for _ in range(30):
        desk.now += timedelta(minutes=48)
        desk.round()
    return desk


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(limits, steps)
def test_the_hourly_cap_holds_and_every_alert_is_sent_exactly_once(
    limit: dict[str, Any], story: list[tuple[str, Any]]
) -> None:
    desk = played(limit, story)
    assert desk.max_in_an_hour() <= limit["hourly_cap"]
    assert {alert: desk.times_sent(alert) for alert in desk.added} == dict.fromkeys(desk.added, 1)
    sent = states(desk)
    assert set(sent) == set(desk.added)
    for _, notification in desk.arrived:
        for alert in notification.alerts:
            state = sent[alert.alert_id]
            assert state == ("digested" if notification.is_digest else "delivered")
    for alert_id, state in sent.items():
        if alert_id.endswith("/resolved") and sent[alert_id.replace("resolved", "firing")] != state:
            assert state == "digested", "sent separately only if its firing was"


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from([(6, 30), (4, 20), (1, 60), (3, 45), (12, 5)]),
    st.lists(st.integers(0, 40), min_size=1, max_size=15),
)
def test_nothing_waits_longer_than_digest_every(limit: tuple[int, int], pauses: list[int]) -> None:
    cap, every = limit
    desk = Simulation(target(hourly_cap=cap, digest_every=timedelta(minutes=every)))
    for number, pause in enumerate(pauses):
        desk.advance(minutes=pause)
        desk.add(f"s{number}")
        desk.round()
    desk.advance(minutes=every)
    assert desk.max_in_an_hour() <= cap
    arrived = {
        alert_id: at
        for at, n in reversed(desk.arrived)
        for alert_id in desk.claims[n.notification_id]
    }
    late = {
        alert_id: arrived[alert_id] - at
        for alert_id, at in desk.added.items()
        if arrived[alert_id] - at > timedelta(minutes=every)
    }
    assert late == {}
