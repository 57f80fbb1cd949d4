"""Precision of rules: share of justified alerts, by the last judgement of each."""

import pytest
from statsmodels.stats.proportion import proportion_confint

from stream_app.store.alerts import alert_actions, alerts, precision
from stream_app.store.alerts.alerts import ActionKind, AlertFilter
from stream_app.store.database.judgements import Reason
from stream_app.store.sessions.scope import ALL_SESSIONS, Scope
from stream_app.store.stream.repository import Store
from tests.store.batches import prepare, process, turn


def filled(store: Store, sessions: dict[str, str]) -> dict[str, str]:
    """Sessions of two teams, each with an alert; episode ids by session."""
    prepare(store)
    for session, team in sessions.items():
        store.commit(process([turn(seq, session_id=session, team=team) for seq in range(4)]))
    found = alerts.find(store, ALL_SESSIONS, AlertFilter()).items
    return {alert.session_id: alert.episode_id for alert in found}


def judge(store: Store, episode: str, reason: Reason) -> None:
    alert_actions.record_action(store, ALL_SESSIONS, episode, ActionKind.ACKNOWLEDGE, "sue", reason)


def test_the_last_judgement_counts_and_not_now_is_left_out(store: Store) -> None:
    episode = filled(store, dict.fromkeys("abcde", "north"))
    assert precision.by_rule(store, ALL_SESSIONS) == []
    judge(store, episode["a"], Reason.JUSTIFIED)
    judge(store, episode["b"], Reason.JUSTIFIED_HANDLED)
    judge(store, episode["c"], Reason.JUSTIFIED)
    judge(store, episode["c"], Reason.FALSE_ALARM)
    judge(store, episode["d"], Reason.NOT_NOW)
    (found,) = precision.by_rule(store, ALL_SESSIONS)
    assert (found.justified, found.judged) == (2, 3)
    # Wilson (1927), 2 of 3 at 95 %
    assert round(found.low, 4) == 0.2077
    assert round(found.high, 4) == 0.9385


def test_the_interval_is_that_of_statsmodels() -> None:
    for judged in range(1, 30):
        for justified in range(judged + 1):
            found = precision.precision_of("rule", justified, judged)
            expected = proportion_confint(justified, judged, method="wilson")
            assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)


def test_precision_covers_only_the_teams_in_scope(store: Store) -> None:
    episode = filled(store, {"a": "north", "b": "south"})
    judge(store, episode["a"], Reason.JUSTIFIED)
    judge(store, episode["b"], Reason.FALSE_ALARM)
    (north,) = precision.by_rule(store, Scope(team="north"))
    assert (north.justified, north.judged) == (1, 1)
