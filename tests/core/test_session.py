"""One session: accepted events, their steps, and the effects of scores."""

from datetime import datetime, timedelta

import msgspec
import pytest

from stream_app.contracts.events import Turn, decode
from stream_app.contracts.scores import AlertState, SessionStatus, Stage
from stream_app.core.measures.baselines import NoBaselines
from stream_app.core.measures.window import WindowPolicy, WindowTurn
from stream_app.core.pipeline.encodings import Encodings, ToEncode
from stream_app.core.rules.alerts import Cause
from stream_app.core.rules.rules import NO_RULES
from stream_app.core.session.alerting import Alerting
from stream_app.core.session.earlier_layouts import from_map
from stream_app.core.session.environment import Environment, Policy
from stream_app.core.session.session import Accepted, Fate, Session, ToEnd, ToScore
from stream_app.core.session.session_state import SessionState, pack, unpack
from stream_app.errors import ContractError
from tests.fakes import START, FakeScorer, end, outcome, turn
from tests.rule_texts import EAGER, rule_text, rules_of

SCORER = FakeScorer()
POLICY = Policy(WindowPolicy(before=2, after=1, reorder_turns=2), EAGER)
ENCODINGS = Encodings(SCORER, POLICY)


def session(policy: Policy = POLICY) -> Session:
    alerting = Alerting(policy.rules, SCORER.empathy, SCORER.bundle_id)
    shared = Environment(
        policy, SCORER.bundle_id, SCORER.empathy, SCORER.outcomes, alerting, NoBaselines()
    )
    return Session(SessionState("s", SCORER.bundle_id), shared)


def accepted(on: Session, *values: bytes) -> list[Accepted]:
    """Accept the events, and encode turns with consent."""
    items = []
    for event in map(decode, values):
        items.append(item := on.accept(event))
        if isinstance(event, Turn) and item.turn is not None:
            ENCODINGS.attach([ToEncode(event, item.turn)])
    return items


def fates(on: Session, *values: bytes) -> list[Fate]:
    return [item.fate for item in accepted(on, *values)]


def due(item: Accepted) -> list[str]:
    """The steps in short form: stage and seq of a request, cause of an end."""
    return [
        f"{step.request.stage.value[0]}{step.request.turn.seq}"
        if isinstance(step, ToScore)
        else step.cause.value
        for step in item.steps
    ]


def carried_out(on: Session, *items: Accepted) -> list[AlertState]:
    """Score all steps as a batch would; return the alert transitions."""
    steps = [step for item in items for step in item.steps]
    transitions = []
    for step in steps:
        if isinstance(step, ToScore):
            [heads] = SCORER.score([step.request])
            transitions += on.add(step, heads)[1]
        else:
            transitions += on.end_alerts(step)
    return [alert.state for alert in transitions]


def test_an_accepted_turn_requests_its_score_and_an_earlier_final_one() -> None:
    items = accepted(session(), turn(seq=0), turn(seq=2), turn(seq=1), end())
    assert [item.fate for item in items] == [Fate.ACCEPTED] * 3 + [Fate.ENDED]
    assert [due(item) for item in items] == [
        ["p0"],
        [],
        ["f0", "p1", "f1", "p2"],
        ["f2", "end"],
    ]


def test_a_withheld_turn_is_not_encoded_or_scored_and_ends_alerts() -> None:
    on = session()
    first, second = accepted(on, turn(seq=0), turn(seq=1, consent=False))
    assert first.turn is not None
    assert (second.fate, second.turn, due(second)) == (Fate.WITHHELD, None, ["withheld"])
    assert on.state.withheld_turns == 1
    assert on.state.consent is False


def test_consent_is_required_unless_the_policy_says_otherwise() -> None:
    silent, refused = turn(seq=0, consent=None), turn(seq=1, consent=False)
    assert fates(session(), silent, refused) == [Fate.WITHHELD] * 2
    lenient = Policy(POLICY.window, require_consent=False)
    assert fates(session(lenient), silent, refused) == [Fate.ACCEPTED, Fate.WITHHELD]


def test_consent_may_follow_a_refusal_and_is_final_once_withdrawn() -> None:
    said = [False, True, None, False, True, None, True]
    values = [turn(seq=seq, consent=given) for seq, given in enumerate(said)]
    accepted_, withheld = Fate.ACCEPTED, Fate.WITHHELD
    assert fates(session(), *values) == [withheld, accepted_, accepted_, *[withheld] * 4]


def test_the_first_counsellor_is_the_first_one_whose_turn_is_stored() -> None:
    on = session()
    given = [
        turn(seq=0, speaker_id="early", role="counsellor", consent=None),
        turn(seq=1, role="client"),
        turn(seq=2, speaker_id="first", role="counsellor"),
        turn(seq=3, speaker_id="second", role="counsellor"),
        turn(seq=4, speaker_id="first", role="counsellor"),
    ]
    found = [item.from_first_counsellor for item in accepted(on, *given)]
    assert found == [False, False, True, False, False]
    again = Session(unpack(pack(on.state)), on._env)
    [later] = accepted(again, turn(seq=5, speaker_id="third", role="counsellor"))
    assert not later.from_first_counsellor


def test_an_outcome_needs_the_same_consent_and_stays_withheld() -> None:
    on = session()
    assert fates(on, outcome(), turn(), outcome(), outcome(value=5.0)) == [
        Fate.WITHHELD,
        Fate.ACCEPTED,
        Fate.WITHHELD,
        Fate.OUTCOME,
    ]


LATER = "2026-01-05T11:00:01+00:00"
"""After the time of ``end()``."""


@pytest.mark.parametrize(
    ("before", "event", "code"),
    [
        ([turn()], turn(text="Something else.", consent=False), "conflicting-duplicate"),
        ([turn(), end()], turn(seq=1, occurred_at=LATER, consent=False), "after-end"),
    ],
)
def test_a_refused_event_changes_nothing(before: list[bytes], event: bytes, code: str) -> None:
    on = session()
    accepted(on, *before)
    state = pack(on.state)
    with pytest.raises(ContractError) as refused:
        on.accept(decode(event))
    assert refused.value.code == code
    assert pack(on.state) == state


@pytest.mark.parametrize("repeated", [turn(), end(), outcome()])
def test_events_without_effect_are_marked(repeated: bytes) -> None:
    on = session()
    accepted(on, turn(), end())
    state = pack(on.state)
    [again] = accepted(on, repeated)
    assert not again.changes
    assert again.steps == ()
    assert pack(on.state) == state


def test_a_late_turn_of_an_ended_session_is_scored_and_raises_no_alert() -> None:
    on = session()
    carried_out(on, *accepted(on, turn(seq=0), turn(seq=2), end()))
    [late] = accepted(on, turn(seq=1))
    [step] = late.steps
    assert late.fate is Fate.LATE
    assert isinstance(step, ToScore)
    assert (step.status, step.request.stage) == (SessionStatus.CLOSED, Stage.FINAL)
    assert carried_out(on, late) == []
    assert on.score().late_turns == 1


def test_a_turn_after_the_end_does_not_change_consent() -> None:
    on = session()
    assert fates(on, turn(seq=0), turn(seq=2), end(), turn(seq=1, consent=False))[-1] is Fate.LATE
    assert on.state.consent is True


def test_steps_use_the_facts_known_at_their_event() -> None:
    first, second = accepted(session(), turn(seq=0), turn(seq=1, domain="peer-support"))
    assert [step.facts.domain for step in first.steps] == [None]
    assert {step.facts.domain for step in second.steps} == {"peer-support"}


def test_the_scores_of_a_session_raise_alerts_and_its_end_resolves_them() -> None:
    on = session()
    assert carried_out(on, *accepted(on, turn(seq=0), turn(seq=1))) == [
        AlertState.PENDING,
        AlertState.FIRING,
    ]
    assert on.score().status is SessionStatus.OPEN
    assert carried_out(on, *accepted(on, end())) == [AlertState.RESOLVED]
    assert on.score().status is SessionStatus.CLOSED


def test_alerts_end_when_consent_is_withdrawn() -> None:
    on = session()
    carried_out(on, *accepted(on, turn(seq=0), turn(seq=1)))
    [withheld] = accepted(on, turn(seq=2, consent=False))
    [step] = [step for step in withheld.steps if isinstance(step, ToEnd)]
    assert (step.cause, step.at) == (Cause.WITHHELD, on.state.last_activity_at)
    assert AlertState.RESOLVED in carried_out(on, withheld)
    assert on.state.watch.waiting_since is None


TIMED = rules_of(
    *(
        rule_text(name, when="waiting && waiting_distress >= 0.0", for_=least)
        for name, least in (("slow", "60s"), ("quick", "30s"))
    )
)
MINUTE = timedelta(minutes=1)


def alerts_at(on: Session, now: datetime) -> list[tuple[str, AlertState, datetime]]:
    return [(alert.rule, alert.state, alert.occurred_at) for alert in on.fire_due(now)]


def test_overdue_rules_fire_in_the_order_in_which_they_were_due() -> None:
    on = session(Policy(POLICY.window, TIMED))
    carried_out(on, *accepted(on, turn(seq=0)))
    assert alerts_at(on, START + MINUTE) == [
        ("quick", AlertState.FIRING, START + MINUTE / 2),
        ("slow", AlertState.FIRING, START + MINUTE),
    ]
    assert on.state.watch.clock == START + MINUTE
    assert alerts_at(on, START + 2 * MINUTE) == []


def test_the_clock_of_a_session_stays_at_the_deadline_however_late_the_tick_is() -> None:
    on = session(Policy(POLICY.window, TIMED))
    carried_out(on, *accepted(on, turn(seq=0)))
    on.fire_due(START + 60 * MINUTE)
    assert on.state.watch.clock == START + MINUTE


def test_the_end_fires_what_was_due_before_it_and_then_resolves_it() -> None:
    on = session(Policy(POLICY.window, TIMED))
    found = carried_out(on, *accepted(on, turn(seq=0), end()))
    pending, firing, resolved = AlertState.PENDING, AlertState.FIRING, AlertState.RESOLVED
    assert found == [pending] * 2 + [firing] * 2 + [resolved] * 2


def test_a_pending_alert_of_a_removed_rule_lapses_when_it_would_have_fired() -> None:
    on = session(Policy(POLICY.window, TIMED))
    carried_out(on, *accepted(on, turn(seq=0)))
    on._env.alerting.adopt(NO_RULES)
    assert alerts_at(on, START + MINUTE / 2 - timedelta(microseconds=1)) == []
    at = START + MINUTE / 2
    assert alerts_at(on, at) == [(name, AlertState.INACTIVE, at) for name in ("slow", "quick")]


def test_the_end_resolves_the_alert_of_a_rule_that_was_removed_before_it() -> None:
    on = session()
    carried_out(on, *accepted(on, turn(seq=0), turn(seq=1)))
    on._env.alerting.adopt(NO_RULES)
    assert carried_out(on, *accepted(on, end())) == [AlertState.RESOLVED]


def test_alerts_do_not_go_back_in_time_with_a_turn_that_was_said_earlier() -> None:
    on = session()
    said = (START + 5 * MINUTE).isoformat()
    items = accepted(on, turn(seq=0, occurred_at=said), turn(seq=1))
    found = [on.add(step, SCORER.score([step.request])[0])[1] for i in items for step in i.steps]
    alerts = [alert for some in found for alert in some]
    assert [alert.occurred_at for alert in alerts] == [START + 5 * MINUTE] * 2


def test_an_idle_flush_requests_all_final_scores_without_alerts() -> None:
    on = session()
    accepted(on, turn(seq=0), turn(seq=2))
    steps = on.flush_idle()
    assert due(Accepted(Fate.ACCEPTED, steps)) == ["f0", "p2", "f2"]
    assert {step.status for step in steps if isinstance(step, ToScore)} == {SessionStatus.IDLE}
    assert session().flush_idle() == []


def test_the_stored_format_of_a_turn_is_compatible_with_earlier_releases() -> None:
    """Sessions that are open during an upgrade have this format in the database."""
    stored = {
        "seq": 4,
        "role": "counsellor",
        "occurred_at": START.isoformat(),
        "digest": 7,
        "words": 3,
        "vectors": b"",
        "rationales": {"explorations": [[0, 4]]},
        "truncated": False,
        "late": False,
        "withheld": True,
    }
    read = from_map(msgspec.msgpack.encode(stored), WindowTurn)
    assert (read.seq, read.withheld, read.rationales) == (4, True, {"explorations": [(0, 4)]})
    assert not read.crisis
    assert read.intents == {}
    assert WindowTurn.__struct_fields__ == (
        *stored,
        "crisis",
        "intents",
        "tokens",
        "readings",
        "speaker",
        "client",
        "named",
        "parts",
    )
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(read), type=WindowTurn) == read
