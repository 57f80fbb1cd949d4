"""The hourly cap and the digest: what comes when, and that nothing is lost or told twice."""

from datetime import time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from stream_app.contracts.scores import AlertState
from stream_app.notifications.targets import Quiet
from stream_app.store import tables
from tests.notifications.simulation import DOES, Simulation, target
from tests.store.reading import rows

MINUTES = st.integers(0, 90)


def states(simulation: Simulation) -> dict[str, str]:
    return {row["alert_id"]: row["state"] for row in rows(simulation.store, tables.deliveries)}


def test_what_is_over_the_cap_comes_in_a_digest_when_the_window_frees() -> None:
    desk = Simulation(target(hourly_cap=2))
    for name in "abcde":
        desk.add(name)
    desk.round()
    assert (desk.by_itself(), desk.digests()) == (["a", "b"], [])
    desk.passes(minutes=59)
    assert desk.digests() == []
    desk.passes(minutes=1)
    assert desk.digests() == [["c", "d", "e"]]


def test_with_digests_every_half_hour_two_of_six_are_kept_for_them() -> None:
    desk = Simulation(target(hourly_cap=6, digest_every=timedelta(minutes=30)))
    for name in "abcdefg":
        desk.add(name)
    desk.round()
    assert desk.by_itself() == ["a", "b", "c", "d"]
    desk.passes(minutes=28)
    desk.add("h")
    desk.passes(minutes=1)
    assert desk.digests() == []
    desk.passes(minutes=1)
    assert desk.digests() == [["e", "f", "g", "h"]]


def test_a_cap_of_one_with_an_hourly_digest_is_digests_only() -> None:
    desk = Simulation(target(hourly_cap=1, digest_every=timedelta(hours=1)))
    desk.add("a")
    desk.passes(minutes=10)
    desk.add("b")
    desk.passes(minutes=60)
    assert (desk.by_itself(), desk.digests()) == ([], [["a", "b"]])


def test_a_resolved_alert_of_a_digest_is_only_in_a_digest() -> None:
    desk = Simulation(target(hourly_cap=1))
    desk.add("a")
    desk.add("b")
    desk.round()
    desk.passes(minutes=60)
    assert (desk.by_itself(), desk.digests()) == (["a"], [["b"]])
    desk.passes(minutes=70)
    desk.add("b", "resolved")
    desk.passes(minutes=59)
    assert len(desk.arrived) == 2, "there is room, but it does not come by itself"
    desk.passes(minutes=2)
    assert desk.digests() == [["b"], ["b"]]


def test_what_fires_and_ends_while_it_waits_is_one_line_that_says_so() -> None:
    desk = Simulation(target(hourly_cap=1))
    desk.add("a")
    desk.add("b")
    desk.round()
    desk.add("b", "resolved")
    desk.passes(minutes=60)
    [digest] = [n for _, n in desk.arrived if n.is_digest]
    assert [alert.state for alert in digest.alerts] == [AlertState.RESOLVED]
    assert set(states(desk).values()) == {"delivered", "digested"}


def test_a_resolved_alert_whose_firing_came_by_itself_comes_by_itself() -> None:
    desk = Simulation(target(hourly_cap=2))
    desk.add("a")
    desk.add("a", "resolved")
    desk.round()
    assert desk.by_itself() == ["a", "a"]


def test_critical_ones_pass_if_that_is_set_and_do_not_count() -> None:
    desk = Simulation(target(hourly_cap=1, critical_passes=True))
    for name in "abc":
        desk.add(name, severity="critical")
    desk.add("d")
    desk.add("e")
    desk.round()
    assert desk.by_itself() == ["a", "b", "c", "d"]
    capped = Simulation(target(hourly_cap=1))
    capped.add("a", severity="critical")
    capped.add("b", severity="critical")
    capped.round()
    assert capped.by_itself() == ["a"]


def test_quiet_hours_hold_until_they_end() -> None:
    berlin = ZoneInfo("Europe/Berlin")  # 10:00 UTC in January is 11:00 there
    quiet = Quiet.model_construct(begin=time(10, 30), end=time(12, 0), zone=berlin)
    desk = Simulation(target(quiet_hours=quiet, critical_passes=True))
    desk.add("a")
    desk.add("b", severity="critical")
    desk.passes(minutes=59)
    assert (desk.by_itself(), desk.digests()) == (["b"], [])
    desk.passes(minutes=1)
    assert desk.digests() == [["a"]]


@pytest.mark.parametrize(
    ("begin", "end", "held"),
    [("22:00", "07:00", [0, 6, 22, 23]), ("09:00", "12:00", [9, 10, 11]), ("03:00", "03:00", [])],
)
def test_quiet_hours_may_go_over_midnight(begin: str, end: str, held: list[int]) -> None:
    pace = target(
        quiet_hours=Quiet.model_validate({"from": begin, "to": end, "zone": "UTC"})
    ).rate_limit
    day = Simulation(target()).now.replace(hour=0)
    assert pace.quiet is not None
    asked = [hour for hour in range(24) if pace.quiet.contains(day + timedelta(hours=hour))]
    assert set(held) <= set(asked)
    assert len(asked) == {"22:00": 9, "09:00": 3, "03:00": 0}[begin]


def test_a_digest_that_is_refused_holds_up_nobody() -> None:
    desk = Simulation(target(hourly_cap=2))
    for name in "abc":
        desk.add(name)
    desk.round()
    desk.passes(minutes=59)
    desk.plan = ["refuse"]
    desk.passes(minutes=1)
    assert desk.digests() == []
    desk.passes(minutes=10)
    assert desk.digests() == [["c"]]


def test_one_that_may_have_arrived_is_the_same_notification_when_it_is_tried_again() -> None:
    desk = Simulation(target(hourly_cap=1))
    desk.add("a")
    desk.plan = ["slow", "forget", "ok"]
    desk.add("b")
    desk.round()
    desk.passes(minutes=5)
    assert {n.notification_id for _, n in desk.arrived} == {"a/firing"}
    assert states(desk) == {"a/firing": "delivered", "b/firing": "held"}


@pytest.mark.parametrize("later", ["fail", "refuse", "die"])
def test_a_digest_that_may_have_arrived_stays_as_it_is_whatever_comes_later(later: str) -> None:
    desk = Simulation(target(hourly_cap=1))
    for name in "abc":
        desk.add(name)
    desk.round()
    desk.now += timedelta(hours=1)
    desk.plan = ["slow", later]
    desk.round()
    desk.add("d")
    desk.round()
    desk.passes(minutes=5)
    assert desk.digests() == [["b", "c"], ["b", "c"]]
    assert len({n.notification_id for _, n in desk.arrived if n.is_digest}) == 1
    desk.passes(hours=1)
    assert desk.digests()[2:] == [["d"]]


def test_one_that_failed_uses_nothing_up() -> None:
    desk = Simulation(target(hourly_cap=1))
    desk.plan = ["fail", "refuse", "fail"]
    desk.add("a")
    desk.passes(minutes=10)
    assert desk.by_itself() == ["a"]


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
paces: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"hourly_cap": 1},
        {"hourly_cap": 3},
        {"hourly_cap": 4, "digest_every": timedelta(minutes=20)},
        {"hourly_cap": 2, "digest_every": timedelta(minutes=45)},
        {"hourly_cap": 1, "digest_every": timedelta(hours=1)},
    ]
)


def played(pace: dict[str, Any], story: list[tuple[str, Any]]) -> Simulation:
    """A story of alerts, time and mishaps, and then a day on which all goes well."""
    desk = Simulation(target(**pace))
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


@settings(max_examples=50, deadline=None)
@given(paces, steps)
def test_never_more_than_the_cap_in_any_hour_and_everything_told_exactly_once(
    pace: dict[str, Any], story: list[tuple[str, Any]]
) -> None:
    desk = played(pace, story)
    assert desk.most_in_an_hour() <= pace["hourly_cap"]
    assert {alert: desk.told_times(alert) for alert in desk.added} == dict.fromkeys(desk.added, 1)
    told = states(desk)
    assert set(told) == set(desk.added)
    for _, notification in desk.arrived:
        for alert in notification.alerts:
            state = told[alert.alert_id]
            assert state == ("digested" if notification.is_digest else "delivered")
    for alert_id, state in told.items():
        if alert_id.endswith("/resolved") and told[alert_id.replace("resolved", "firing")] != state:
            assert state == "digested", "not by itself if its firing was not"


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from([(6, 30), (4, 20), (1, 60), (3, 45), (12, 5)]),
    st.lists(st.integers(0, 40), min_size=1, max_size=15),
)
def test_nothing_waits_longer_than_digest_every(pace: tuple[int, int], pauses: list[int]) -> None:
    cap, every = pace
    desk = Simulation(target(hourly_cap=cap, digest_every=timedelta(minutes=every)))
    for number, pause in enumerate(pauses):
        desk.passes(minutes=pause)
        desk.add(f"s{number}")
        desk.round()
    desk.passes(minutes=every)
    assert desk.most_in_an_hour() <= cap
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
