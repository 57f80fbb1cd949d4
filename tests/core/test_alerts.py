"""The state machine of alerts, with a rule about the risk."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Alert, AlertState, Severity
from stream_app.core.measures.aggregates import Aggregates
from stream_app.core.measures.exchanges import MILLION, Exchanges
from stream_app.core.measures.watch import Facts, Watch
from stream_app.core.rules.alerts import AlertStatus, Moment, abandon, close, fire_overdue, observe
from stream_app.core.rules.rules import Rule
from stream_app.core.rules.variable_words import present
from stream_app.core.rules.variables import Reading
from stream_app.core.session.alerting import end_stored
from tests.fakes import START, FakeScorer
from tests.rule_texts import risk_rules, rule_text, rules_of

NO_FACTS = Facts()
MODEL = FakeScorer.empathy
WEIGHING = MODEL.of(None, None).weighing
[RULE] = risk_rules(0.7, 0.5, turns=2, cooldown=3).rules


def one_rule(**fields: object) -> Rule:
    chosen = {"when": "risk >= 0.7", "clear": "risk < 0.5", "value": "risk", **fields}
    return rules_of(rule_text(**chosen)).rules[0]


def reading(value: float | None, facts: Facts = NO_FACTS) -> Reading:
    return Reading(Aggregates(), Watch(), facts, value, None, START)


def moment(seq: int | None = 1, after: float = 0.0, counsellor: bool = True) -> Moment:
    return Moment("s", "b", seq, START + timedelta(seconds=after), counsellor)


def seen(rule: Rule, values: list[float | None]) -> tuple[list[str], list[Alert]]:
    """The state after each reading, ten seconds apart, and the transitions."""
    status = AlertStatus()
    states, found = [], []
    for seq, value in enumerate(values):
        found += observe(rule, status, reading(value), moment(seq, 10.0 * seq))
        states.append(status.state.value)
    return states, found


def states(rule: Rule, values: list[float | None]) -> list[str]:
    return seen(rule, values)[0]


def test_a_persistent_high_risk_fires_after_the_pending_turns() -> None:
    assert states(RULE, [0.8, 0.8, 0.8]) == ["pending", "firing", "firing"]


def test_values_have_the_names_of_earlier_releases_too() -> None:
    _, found = seen(RULE, [0.8])
    assert found[0].values == {"low_empathy_risk": 0.8, "risk": 0.8}
    assert present(found[0].values) == {"low_empathy_risk": 0.8}


def test_a_rule_may_require_more_turns() -> None:
    assert states(one_rule(for_="4 turns"), [0.8] * 4) == ["pending"] * 3 + ["firing"]


def test_a_rule_for_one_turn_fires_immediately_with_both_transitions() -> None:
    for least in ("1 turn", "0s"):
        found = observe(one_rule(for_=least), AlertStatus(), reading(0.9), moment())
        assert [a.state for a in found] == [AlertState.PENDING, AlertState.FIRING]


def test_every_transition_has_the_rules_protocol() -> None:
    rule = one_rule(protocol="Call the duty manager.", for_="1 turn")
    _, transitions = seen(rule, [0.9, 0.1])
    assert [alert.protocol for alert in transitions] == ["Call the duty manager."] * 3
    assert {alert.protocol for alert in seen(RULE, [0.8, 0.8])[1]} == {None}


def test_a_single_peak_lapses() -> None:
    assert states(RULE, [0.8, 0.6, 0.8, 0.8]) == ["pending", "inactive", "pending", "firing"]


def test_between_the_thresholds_a_firing_alert_continues() -> None:
    found = states(RULE, [0.7, 0.7, 0.69, 0.5, 0.49])
    assert found == ["pending", "firing", "firing", "firing", "resolved"]


def test_without_a_clear_condition_it_ends_when_the_condition_does() -> None:
    rule = one_rule(clear=None, for_="1 turn")
    assert states(rule, [0.7, 0.69]) == ["firing", "resolved"]


def test_unknown_values_neither_start_nor_end_alerts() -> None:
    assert states(RULE, [None, 0.8, None, 0.8, 0.8, None]) == [
        "inactive",
        "pending",
        "inactive",
        "pending",
        "firing",
        "firing",
    ]
    rule = one_rule(clear=None, for_="1 turn")
    assert states(rule, [0.8, None, 0.1]) == ["firing", "firing", "resolved"]


def test_after_an_alert_the_rule_cools_down_for_its_turns() -> None:
    after = states(RULE, [0.8, 0.8, 0.1, 0.9, 0.9, 0.9, 0.9, 0.9])
    assert after[2:] == ["resolved"] * 4 + ["pending", "firing"]
    assert states(one_rule(for_="1 turn", cooldown="0 turns"), [0.8, 0.1, 0.8])[-1] == "firing"


def test_a_cooldown_may_be_a_time() -> None:
    rule = one_rule(for_="1 turn", cooldown="25s")
    assert states(rule, [0.8, 0.1, 0.8, 0.8, 0.8]) == [
        "firing",
        "resolved",
        "resolved",
        "resolved",
        "firing",
    ]


def test_a_cooldown_in_time_is_over_at_its_last_moment() -> None:
    rule = one_rule(for_="1 turn", cooldown="20s")
    found = ["firing", "resolved", "resolved", "firing"]
    assert states(rule, [0.8, 0.1, 0.8, 0.8]) == found


def test_turns_of_the_client_do_not_shorten_a_cooldown() -> None:
    rule, status = one_rule(for_="0s", cooldown="1 turn"), AlertStatus()
    for seq, value in enumerate((0.8, 0.1)):
        observe(rule, status, reading(value), moment(seq))
    for seq in range(2, 6):
        assert observe(rule, status, reading(0.8), moment(seq, counsellor=False)) == []
    assert observe(rule, status, reading(0.8), moment(6)) == []
    assert len(observe(rule, status, reading(0.8), moment(7))) == 2


def test_a_timed_alert_is_over_with_a_turn_of_the_client() -> None:
    rule, status = one_rule(for_="0s"), AlertStatus()
    observe(rule, status, reading(0.8), moment(1))
    [over] = observe(rule, status, reading(0.1), moment(2, counsellor=False))
    assert over.state is AlertState.RESOLVED


def test_the_latest_turns_of_a_long_condition_are_named() -> None:
    [_, fired] = seen(one_rule(for_="25 turns"), [0.8] * 25)[1]
    assert fired.turns == list(range(5, 25))


def test_the_end_resolves_firing_and_drops_pending_alerts() -> None:
    firing, pending, quiet = AlertStatus(), AlertStatus(), AlertStatus()
    for seq in (1, 3):
        observe(RULE, firing, reading(0.8), moment(seq))
    observe(RULE, pending, reading(0.8), moment())
    at_end = moment(None)
    [resolved] = close(RULE, firing, reading(0.8), at_end)
    assert (resolved.state, resolved.seq, resolved.turns) == (AlertState.RESOLVED, None, [1, 3])
    assert [a.state for a in close(RULE, pending, reading(0.8), at_end)] == [AlertState.INACTIVE]
    assert close(RULE, quiet, reading(0.8), at_end) == []


def test_a_transition_has_rule_reason_and_turn() -> None:
    status = AlertStatus()
    observe(RULE, status, reading(0.75), moment(3))
    [alert] = observe(RULE, status, reading(0.8), moment(5))
    assert (alert.previous, alert.state) == (AlertState.PENDING, AlertState.FIRING)
    assert (alert.value, alert.threshold, alert.seq, alert.episode) == (0.8, 0.7, 5, 1)
    assert (alert.turns, alert.severity) == ([3, 5], Severity.WARNING)
    assert alert.values == {"low_empathy_risk": 0.8, "risk": 0.8}
    assert alert.reason == "The risk is 0.80."


def reading_of(*answers: int, domain: str = "peer-support") -> Reading:
    """Emotional messages with these answers, 0 or 1."""
    exchanges = Exchanges()
    for place, answer in enumerate(answers):
        exchanges.observe(Role.CLIENT, 2 * place, MILLION, 3, WEIGHING)
        exchanges.observe(Role.COUNSELLOR, 2 * place + 1, answer * MILLION, 3, WEIGHING)
    return Reading(Aggregates(), Watch(), Facts(domain), 0.8, MODEL, START, exchanges)


QUOTING = one_rule(summary="Little empathy: {seen}.", for_="2 turns")


def test_a_reason_has_the_evidence_and_the_alert_its_messages() -> None:
    status = AlertStatus()
    found = reading_of(0, 1, 0)
    observe(QUOTING, status, found, moment(3))
    [alert] = observe(QUOTING, status, found, moment(5))
    assert alert.reason == (
        "Little empathy: 2 of the last 3 emotional messages got no empathic answer; "
        "usual in peer support: 1 of 4."
    )
    assert alert.turns == [0, 4]


def test_a_rule_that_quotes_evidence_needs_evidence_that_is_worse_than_usual() -> None:
    """The risk lags behind: three good answers are no reason, whatever it says."""
    status = AlertStatus()
    for seq in (1, 3, 5, 7):
        assert observe(QUOTING, status, reading_of(1, 1, 1), moment(seq)) == []
    [alert] = observe(QUOTING, status, reading_of(0, 0, 1), moment(9))
    assert alert.state is AlertState.PENDING
    [lapsed] = observe(QUOTING, status, reading_of(0, 0, 1, 1, 1, 1, 1), moment(11))
    assert lapsed.state is AlertState.INACTIVE


def test_a_rule_about_something_else_does_not_wait_for_evidence() -> None:
    """Its alert says what it is about; the evidence is not known."""
    rule = one_rule(when="counsellor_turns >= 0", clear=None, summary="Look: {seen}.", for_="0s")
    [_, alert] = observe(rule, AlertStatus(), reading_of(1, 1, 1), moment(5))
    assert (alert.state, alert.reason) == (AlertState.FIRING, "Look: not known.")


def test_a_rule_of_turns_ignores_client_turns() -> None:
    assert observe(RULE, AlertStatus(), reading(0.9), moment(counsellor=False)) == []
    by_time = one_rule(for_="30s")
    assert len(observe(by_time, AlertStatus(), reading(0.9), moment(counsellor=False))) == 1


def test_a_time_rule_has_its_deadline_as_time() -> None:
    rule, status = one_rule(for_="30s"), AlertStatus()
    observe(rule, status, reading(0.9), moment(4, 0.0, counsellor=False))
    assert status.due_at == START + timedelta(seconds=30)
    assert fire_overdue(rule, status, reading(0.9), moment(5, 29.0)) == []
    [fired] = fire_overdue(rule, status, reading(0.9), moment(5, 500.0))
    assert (fired.state, fired.seq, fired.turns) == (AlertState.FIRING, 4, [4])
    assert fired.occurred_at == START + timedelta(seconds=30)
    assert status.due_at is None, "nothing wakes the session any more"
    assert fire_overdue(rule, status, reading(0.9), moment(5, 501.0)) == []


def test_a_rule_fires_only_in_the_sessions_it_applies_to() -> None:
    rule = one_rule(for_="1 turn", teams="[west]", domains="[counselling, peer-support]")
    for facts, begins in (
        (Facts("counselling", None, "west"), True),
        (Facts("counselling", None, "east"), False),
        (Facts("customer-service", None, "west"), False),
        (Facts(), False),
    ):
        assert bool(observe(rule, AlertStatus(), reading(0.9, facts), moment())) is begins


def test_a_rule_may_apply_to_some_channels() -> None:
    rule = one_rule(for_="1 turn", channels="[chat]")
    for channel, begins in (("chat", True), ("phone", False), (None, False)):
        found = observe(rule, AlertStatus(), reading(0.9, Facts(channel=channel)), moment())
        assert bool(found) is begins


def test_too_few_scored_turns_start_no_alert() -> None:
    rule = one_rule(for_="1 turn", min_scored_turns=3)
    few, enough = reading(0.9), reading(0.9)
    enough.aggregates.counsellor.turns = 3
    assert observe(rule, AlertStatus(), few, moment()) == []
    assert len(observe(rule, AlertStatus(), enough, moment())) == 2


def test_a_removed_rule_ends_its_alert_and_keeps_its_count() -> None:
    status = AlertStatus()
    for seq in (1, 3):
        observe(RULE, status, reading(0.8), moment(seq))
    [gone] = abandon(RULE.name, status, moment(5))
    assert (gone.state, gone.turns) == (AlertState.RESOLVED, [1, 3])
    assert gone.reason == "The rule is no longer in force."
    assert (status.state, status.episode) == (AlertState.INACTIVE, 1)
    assert abandon(RULE.name, status, moment(7)) == []
    [again] = observe(RULE, status, reading(0.8), moment(9))
    assert again.episode == 2


def test_a_pending_alert_of_a_removed_rule_lapses_and_is_no_longer_due() -> None:
    rule, status = one_rule(for_="30s", severity="critical"), AlertStatus()
    observe(rule, status, reading(0.8), moment(1))
    assert status.due_at is not None
    [lapsed] = abandon(rule.name, status, moment(3))
    assert (lapsed.state, lapsed.severity) == (AlertState.INACTIVE, Severity.CRITICAL)
    assert status.due_at is None


@pytest.mark.parametrize(
    ("state", "to"),
    [(AlertState.PENDING, AlertState.INACTIVE), (AlertState.FIRING, AlertState.RESOLVED)],
)
def test_a_stored_alert_ends_not_before_its_last_transition(
    state: AlertState, to: AlertState
) -> None:
    last = next(a for a in seen(RULE, [0.8, 0.8])[1] if a.state is state)
    for minutes, ends in ((-1, 0), (1, 1)):
        at = last.occurred_at + timedelta(minutes=minutes)
        ended = end_stored(last, at)
        assert ended.occurred_at == last.occurred_at + timedelta(minutes=ends)
        assert (ended.state, ended.previous, ended.episode_id) == (to, state, last.episode_id)
        assert ended.alert_id != last.alert_id


def test_alert_ids_are_deterministic_and_unique_per_transition() -> None:
    values: list[float | None] = [0.8, 0.8, 0.1, 0.1, 0.1, 0.1, 0.8, 0.8]
    one, other = seen(RULE, values)[1], seen(RULE, values)[1]
    assert one == other
    assert len({a.alert_id for a in one}) == len(one) == 5
    assert [a.episode for a in one] == [1, 1, 1, 2, 2]
    assert len({a.episode_id for a in one}) == 2


def test_alert_ids_differ_between_bundles() -> None:
    found = [
        observe(RULE, AlertStatus(), reading(0.8), Moment("s", bundle, 1, START, True))[0]
        for bundle in ("one", "two")
    ]
    assert len({alert.alert_id for alert in found}) == 2
    assert len({alert.episode_id for alert in found}) == 2


VALUES = st.lists(st.one_of(st.none(), st.sampled_from([0.1, 0.6, 0.8])), max_size=40)
KINDS = [
    RULE,
    one_rule(for_="1 turn", cooldown="0 turns"),
    one_rule(for_="3 turns", cooldown="35s"),
    one_rule(for_="25s", cooldown="1 turn"),
    one_rule(for_="0s", clear=None),
]
NEXT = {
    AlertState.INACTIVE: {AlertState.PENDING},
    AlertState.PENDING: {AlertState.FIRING, AlertState.INACTIVE},
    AlertState.FIRING: {AlertState.RESOLVED},
    AlertState.RESOLVED: {AlertState.PENDING},
}


@pytest.mark.parametrize("rule", KINDS)
@given(values=VALUES)
def test_only_allowed_transitions_occur(rule: Rule, values: list[float | None]) -> None:
    """Each transition starts in the previous state, is allowed, and is not earlier."""
    found = seen(rule, values)[1]
    state = AlertState.INACTIVE
    for alert in found:
        at_rest = {state, AlertState.INACTIVE} if state is AlertState.RESOLVED else {state}
        assert alert.previous in at_rest
        assert alert.state in NEXT[state]
        state = alert.state
    assert [a.occurred_at for a in found] == sorted(a.occurred_at for a in found)
    assert len({a.alert_id for a in found}) == len(found)
    assert all(len(a.turns) <= 20 for a in found)


@pytest.mark.parametrize("rule", KINDS)
@given(values=VALUES)
def test_a_firing_condition_has_held_for_its_duration(
    rule: Rule, values: list[float | None]
) -> None:
    for alert in seen(rule, values)[1]:
        if alert.state is not AlertState.FIRING:
            continue
        assert all(values[seq] == 0.8 for seq in alert.turns)
        if rule.lasts.time is None:
            assert len(alert.turns) == rule.lasts.turns
        else:
            began = START + timedelta(seconds=10 * alert.turns[0])
            assert alert.occurred_at == began + rule.lasts.time


@pytest.mark.parametrize("fields", [{"for_": "90s"}, {"for_": "0s", "cooldown": "24h"}])
def test_a_deadline_beyond_the_calendar_is_no_error(fields: dict[str, str]) -> None:
    """Settings may allow such events; their deadline is never reached."""
    rule, status = one_rule(**fields), AlertStatus()
    last = datetime.max.replace(tzinfo=UTC)
    for value in (0.9, 0.4, 0.9, 0.9):
        observe(rule, status, reading(value), Moment("s", "b", 1, last, True))
    assert status.due_at in (None, last)
