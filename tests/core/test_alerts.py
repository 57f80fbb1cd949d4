from stream_app.contracts.scores import AlertState
from stream_app.core.alerts import AlertRule, AlertStatus, Reading, close, observe
from tests.fakes import START

RULE = AlertRule(enter=0.7, exit=0.5, for_turns=2, cooldown_turns=3)


def reading(value: float, seq: int | None = 1) -> Reading:
    return Reading("s", "b", seq, START, value)


def states(rule: AlertRule, values: list[float]) -> list[str]:
    """The state after each reading."""
    status = AlertStatus()
    found = []
    for seq, value in enumerate(values):
        observe(rule, status, reading(value, seq))
        found.append(status.state.value)
    return found


def test_a_risk_that_stays_high_fires_after_the_pending_turns() -> None:
    assert states(RULE, [0.8, 0.8, 0.8]) == ["pending", "firing", "firing"]


def test_a_rule_may_ask_for_more_turns() -> None:
    rule = AlertRule(enter=0.7, exit=0.5, for_turns=4)
    assert states(rule, [0.8] * 4) == ["pending", "pending", "pending", "firing"]


def test_a_rule_for_one_turn_fires_at_once_with_both_transitions() -> None:
    rule = AlertRule(for_turns=1)
    assert [a.state for a in observe(rule, AlertStatus(), reading(0.9))] == [
        AlertState.PENDING,
        AlertState.FIRING,
    ]


def test_a_single_peak_lapses() -> None:
    assert states(RULE, [0.8, 0.6, 0.8, 0.8]) == ["pending", "inactive", "pending", "firing"]


def test_between_the_thresholds_a_firing_alert_goes_on() -> None:
    assert states(RULE, [0.7, 0.7, 0.69, 0.5, 0.49]) == [
        "pending",
        "firing",
        "firing",
        "firing",
        "resolved",
    ]


def test_after_it_was_resolved_the_rule_rests() -> None:
    after = states(RULE, [0.8, 0.8, 0.1, 0.9, 0.9, 0.9, 0.9, 0.9])
    assert after[2:] == ["resolved", "resolved", "resolved", "inactive", "pending", "firing"]


def test_the_end_resolves_what_fires_and_drops_what_is_pending() -> None:
    firing, pending, quiet = AlertStatus(), AlertStatus(), AlertStatus()
    for value in (0.8, 0.8):
        observe(RULE, firing, reading(value))
    observe(RULE, pending, reading(0.8))
    assert [a.state for a in close(RULE, firing, reading(0.8, None))] == [AlertState.RESOLVED]
    assert [a.state for a in close(RULE, pending, reading(0.8, None))] == [AlertState.INACTIVE]
    assert close(RULE, quiet, reading(0.8, None)) == []


def test_a_transition_says_what_why_and_where() -> None:
    status = AlertStatus()
    observe(RULE, status, reading(0.75, 3))
    [alert] = observe(RULE, status, reading(0.8, 5))
    assert (alert.previous, alert.state) == (AlertState.PENDING, AlertState.FIRING)
    assert (alert.value, alert.threshold, alert.seq, alert.episode) == (0.8, 0.7, 5, 1)


def test_identities_are_the_same_every_time_and_differ_between_transitions() -> None:
    def ids() -> list[str]:
        status = AlertStatus()
        values = [0.8, 0.8, 0.1, 0.1, 0.1, 0.1, 0.8, 0.8]
        return [
            alert.alert_id
            for seq, value in enumerate(values)
            for alert in observe(RULE, status, reading(value, seq))
        ]

    assert ids() == ids()
    assert len(set(ids())) == len(ids()) == 5


def test_two_bundles_do_not_share_an_identity() -> None:
    def first(bundle: str) -> str:
        given = Reading("s", bundle, 1, START, 0.8)
        return observe(RULE, AlertStatus(), given)[0].alert_id

    assert first("one") != first("two")
