"""Which open sessions a wall shows first, and the conditions on lists of sessions."""

from collections.abc import Sequence

import pytest
import sqlalchemy as sa

from stream_app.store.alerts import alerts, open_alerts
from stream_app.store.alerts.alerts import AlertFilter, ShownState
from stream_app.store.database import tables
from stream_app.store.database.any_of import IDS, any_of
from stream_app.store.sessions import live_sessions, sessions
from stream_app.store.sessions.scope import ALL_SESSIONS, Scope
from stream_app.store.sessions.sessions import SessionFilter
from stream_app.store.stream.repository import Store
from tests.store import batches

RISKS = {"a": 0.2, "b": 0.9, "c": None, "d": 0.5, "e": 0.7}
NORTH = Scope(team="north")


@pytest.fixture
def filled(store: Store) -> Store:
    """Open sessions of team north, an ended and a hidden one, and one of team south."""
    events = [
        batches.turn(seq, session_id=name, team="south" if name == "south" else "north")
        for name in (*RISKS, "ended", "hidden", "south")
        for seq in range(4)
    ]
    store.commit(batches.process([*events, batches.end(session_id="ended")]))
    scores = tables.session_scores
    with store.transaction() as connection:
        for name, risk in RISKS.items():
            changed = sa.update(scores).where(scores.c.session_id == name)
            connection.execute(changed.values(low_empathy_risk=risk))
        hidden = sa.update(tables.sessions).where(tables.sessions.c.session_id == "hidden")
        connection.execute(hidden.values(hidden=True))
    return store


def shown(
    store: Store,
    scope: Scope = NORTH,
    pinned: Sequence[str] = (),
    unanswered: Sequence[str] = (),
    limit: int = 10,
) -> tuple[list[str], int]:
    found, total = live_sessions.by_urgency(
        store, scope, SessionFilter(), pinned=pinned, unanswered=unanswered, limit=limit
    )
    return [one.session_id for one in found], total


def test_the_highest_risk_comes_first_and_all_sessions_are_counted(filled: Store) -> None:
    assert shown(filled) == (["b", "e", "d", "a", "c"], 5)
    assert shown(filled, limit=2) == (["b", "e"], 5)
    assert live_sessions.count(filled, NORTH, SessionFilter()) == 5


def test_pinned_and_unanswered_sessions_are_never_cut_off_by_a_higher_risk(filled: Store) -> None:
    assert shown(filled, pinned=["a"], unanswered=["c"], limit=3) == (["a", "c", "b"], 5)
    assert shown(filled, pinned=["gone", "south"], limit=1) == (["b"], 5)


def test_only_sessions_of_the_scope_and_the_filter_are_counted(filled: Store) -> None:
    assert shown(filled, Scope(team="south"))[0] == ["south"]
    names, total = shown(filled, ALL_SESSIONS)
    assert "hidden" not in names
    assert "ended" not in names
    assert total == 6
    in_team = live_sessions.count(filled, ALL_SESSIONS, SessionFilter(team="south"))
    assert in_team == 1
    assert shown(filled, Scope(speaker="nobody")) == ([], 0)


def test_a_session_is_found_only_in_its_scope(filled: Store) -> None:
    assert sessions.bundle_of(filled, NORTH, "a") == batches.BUNDLE
    assert {card.session_id for card in sessions.of_ids(filled, NORTH, ["a", "ended", "x"])} == {
        "a",
        "ended",
    }
    for scope, name in ((Scope(team="south"), "a"), (NORTH, "hidden"), (NORTH, "missing")):
        assert sessions.bundle_of(filled, scope, name) is None
        assert sessions.of_ids(filled, scope, [name]) == []


def test_open_alerts_are_those_of_the_lists_and_only_of_open_sessions(filled: Store) -> None:
    listed = alerts.find(filled, NORTH, AlertFilter(fired=True), limit=1000).items
    expected = {
        (alert.session_id, alert.episode_id, alert.rule, alert.state, alert.began_at)
        for alert in listed
        if alert.state is ShownState.FIRING and alert.session_id != "ended"
    }
    assert expected
    by_session = open_alerts.by_session(filled, NORTH)
    found = [alert for of_one in by_session.values() for alert in of_one]
    assert {(a.session_id, a.episode_id, a.rule, a.state, a.began_at) for a in found} == expected
    assert {a.episode_id: a.reason for a in found}.items() <= {
        alert.episode_id: alert.reason for alert in listed
    }.items()
    name, of_one = next(iter(by_session.items()))
    assert open_alerts.by_session(filled, NORTH, name) == {name: of_one}
    assert open_alerts.by_session(filled, Scope(team="west")) == {}


def test_numbers_of_alerts_are_those_of_the_lists(filled: Store) -> None:
    counted = alerts.counts(filled, NORTH)
    assert sum(each.number for each in counted) > 0
    for chosen in (
        AlertFilter(states=frozenset({ShownState.FIRING})),
        AlertFilter(states=frozenset({ShownState.RESOLVED}), fired=True, judged=False),
        AlertFilter(fired=False),
        AlertFilter(judged=True),
    ):
        number = sum(each.number for each in counted if each.matches(chosen))
        assert number == len(alerts.find(filled, NORTH, chosen, limit=1000).items)


@pytest.mark.parametrize("ids", [[], ["a"], ["a", "b", 'with "quotes"', "ü"]])
def test_a_list_parameter_means_the_same_as_in(filled: Store, ids: list[str]) -> None:
    name = tables.sessions.c.session_id
    with filled.reading() as connection:
        found = set(connection.scalars(sa.select(name).where(any_of(name, IDS)), {IDS: ids}))
        assert found == set(connection.scalars(sa.select(name).where(name.in_(ids))))
