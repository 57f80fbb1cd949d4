"""Alerts of a draft are compared with those of the rules in force, and inherit their answers."""

from datetime import UTC, datetime, timedelta

from stream_app.contracts.scores import Alert, AlertState, Severity
from stream_app.core.pipeline.rule_trial import Answered, Comparison, Span, pairs, spans

START = datetime(2026, 1, 5, 10, tzinfo=UTC)


def span(begin: int, end: int | None, rule: str = "r") -> Span:
    return Span("s", rule, at(begin), None if end is None else at(end))


def at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def transitions(*times: tuple[AlertState, int], episode: int = 1, rule: str = "r") -> list[Alert]:
    return [
        Alert(
            alert_id=f"{rule}{episode}{state.value}",
            episode_id=f"{rule}{episode}",
            rule=rule,
            severity=Severity.WARNING,
            labels={},
            session_id="s",
            bundle="b",
            state=state,
            previous=AlertState.INACTIVE,
            episode=episode,
            seq=1,
            occurred_at=at(minute),
            reason="",
            value=None,
            threshold=None,
            values={},
            turns=[],
            rules_digest="",
        )
        for state, minute in times
    ]


def fired(begin: int, end: int, episode: int = 1, rule: str = "r") -> list[Alert]:
    pending, firing, resolved = AlertState.PENDING, AlertState.FIRING, AlertState.RESOLVED
    return transitions(
        (pending, begin), (firing, begin), (resolved, end), episode=episode, rule=rule
    )


def test_an_alert_lasts_from_pending_to_its_end_and_lapsed_ones_are_none() -> None:
    pending, firing = AlertState.PENDING, AlertState.FIRING
    assert spans(transitions((pending, 1), (firing, 3), (AlertState.RESOLVED, 5))) == [span(1, 5)]
    assert spans(transitions((pending, 1), (firing, 3))) == [span(1, None)]
    assert spans(transitions((pending, 1), (AlertState.INACTIVE, 2))) == []


def test_alerts_correspond_once_and_only_if_they_overlap() -> None:
    assert pairs([span(0, 2)], [span(2, 4)]) == [(0, 0)]
    assert pairs([span(0, 1)], [span(2, 4)]) == []
    assert pairs([span(0, 9)], [span(1, 2), span(3, 4)]) == [(0, 0)]
    assert pairs([span(0, 2), span(3, None)], [span(1, None)]) == [(0, 0)]
    assert pairs([span(5, None)], [span(1, None)]) == [(0, 0)]


def test_counts_and_answers_of_a_draft() -> None:
    found = Comparison()
    draft = [*fired(0, 5), *fired(20, 25, 2), *fired(0, 1, rule="new")]
    in_force = [*fired(3, 8), *fired(30, 35, 2), *fired(40, 45, 3)]
    answered = [
        Answered(span(3, 8), True),
        Answered(span(30, 35), False),
        Answered(span(40, 45), True),
    ]
    found.add(draft, in_force, answered)
    found.add([], [], [])
    [rule, new] = found.of_rules(["r", "new"], ["r"])
    assert (rule.sessions, rule.alerts, rule.both, rule.only_draft, rule.only_in_force) == (
        1,
        2,
        1,
        1,
        2,
    )
    assert (rule.judged, rule.justified, rule.missed, rule.avoided) == (1, 1, 1, 1)
    assert (new.alerts, new.both, new.in_force, new.judged) == (1, 0, False, 0)


def test_a_removed_rule_is_listed_with_what_it_would_no_longer_raise() -> None:
    found = Comparison()
    found.add([], fired(0, 5), [Answered(span(0, 5), False)])
    [rule] = found.of_rules([], ["r"])
    assert not rule.in_draft
    assert (rule.only_in_force, rule.avoided, rule.missed) == (1, 1, 0)
