"""Each counsellor of a session is judged by their own answers; the session keeps its history."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Alert, AlertState, Expressed, Level
from stream_app.core.measures.baselines import Baseline, NoBaselines, Usual
from stream_app.core.measures.window import ScoringRequest, WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.rules.rules import RuleSet
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.environment import Policy
from stream_app.core.session.ports import Encoding, HeadScores
from stream_app.core.session.session_state import Versioned, pack, unpack
from tests.fakes import FakeScorer, received, turn
from tests.rule_texts import ALL, EAGER, risk_text, rule_text, rules_of

WARM, COLD = "That must be terribly hard.", "Fill in form B."
Said = tuple[str, str]
"""Speaker and text; the speaker `c` is the client."""


class ByText(FakeScorer):
    """Scores that depend on the turn's text alone, so that sessions can be compared."""

    def encode(self, texts: list[str], roles: list[Role] | None = None) -> list[Encoding]:
        return [
            structs.replace(each, vectors=b"warm" if text.startswith("That") else b"cold")
            for each, text in zip(super().encode(texts, roles), texts, strict=True)
        ]

    def _score(self, request: ScoringRequest) -> HeadScores:
        if request.turn.role is Role.CLIENT:
            return HeadScores(Expressed(), {}, {"distress": {"no": 0.1, "yes": 0.9}}, 0.9, [])
        level = 2 if request.turn.vectors == b"warm" else 0
        given = [0.0, 0.0, 0.0]
        given[level] = 1.0
        names = ("emotional_reactions", "interpretations", "explorations")
        return HeadScores(
            Expressed(**{name: Level(level, given, []) for name in names}), {}, {}, 0.9, []
        )


def processed(said: Sequence[Said], rules: RuleSet = ALL) -> BatchResult:
    log = [
        turn(
            seq=seq,
            role="client" if speaker == "c" else "counsellor",
            speaker_id=speaker,
            text=f"{text} {seq}.",
        )
        for seq, (speaker, text) in enumerate(said)
    ]
    pipeline = Pipeline(ByText(), Policy(WindowPolicy(), rules))
    states: dict[str, Versioned] = {}
    result = pipeline.process(received(log), states)
    for versioned in states.values():
        assert unpack(pack(versioned.state)) == versioned.state
    return result


def answers(counsellor: str, text: str, count: int) -> list[Said]:
    return [each for _ in range(count) for each in (("c", "I cry."), (counsellor, text))]


def risks(result: BatchResult) -> list[float | None]:
    return [risk for _, risk in result.session_scores[0].risk_by_turn]


@pytest.mark.parametrize(("first", "second"), [(COLD, WARM), (WARM, COLD)])
def test_the_successors_risk_is_that_of_a_session_of_their_own(first: str, second: str) -> None:
    both = processed(answers("ann", first, 6) + answers("ben", second, 6))
    assert risks(both)[:6] == risks(processed(answers("ann", first, 6)))
    assert risks(both)[6:] == risks(processed(answers("ben", second, 6)))
    whole = both.session_scores[0]
    assert whole.low_empathy_risk == risks(both)[-1]
    one = processed(answers("ann", first, 6) + answers("ann", second, 6)).session_scores[0]
    assert whole.empathy_index == one.empathy_index
    assert whole.missed_opportunities == one.missed_opportunities


def of_rule(result: BatchResult, name: str) -> list[Alert]:
    return [alert for alert in result.alerts if alert.rule == name]


def test_an_alert_about_the_first_counsellor_ends_with_the_hand_over() -> None:
    cold = answers("ann", COLD, 8)
    assert of_rule(processed(cold), "low-empathy")[-1].state is AlertState.FIRING
    alerts = of_rule(processed(cold + answers("ben", WARM, 8)), "low-empathy")
    assert [alert.state for alert in alerts][-1] is AlertState.RESOLVED
    assert (alerts[-1].seq, alerts[-1].reason) == (17, "Another counsellor speaks now.")


COUNTING = rules_of(
    risk_text(0.0, 0.0, turns=9).replace("low-empathy-risk", "long"),
    rule_text("begun", when="counsellor_turns >= 1", for_="1 turn"),
    rule_text("missed", when="missed_opportunities >= 0", for_="1 turn"),
)


def test_a_hand_over_ends_pending_and_firing_alerts_about_empathy_and_no_others() -> None:
    said = [*answers("ann", COLD, 3), *answers("ben", COLD, 1)]
    found = processed(said, COUNTING)
    ended = {a.rule: a.state for a in found.alerts if a.reason == "Another counsellor speaks now."}
    assert ended == {"long": AlertState.INACTIVE, "missed": AlertState.RESOLVED}
    begun = of_rule(found, "begun")
    assert [alert.state for alert in begun] == [AlertState.PENDING, AlertState.FIRING]


def test_an_idle_session_in_which_a_successor_waits_for_a_turn_ends_no_alert() -> None:
    pipeline = Pipeline(ByText(), Policy(WindowPolicy(), EAGER))
    states: dict[str, Versioned] = {}
    log = [turn(seq=0), turn(seq=1, speaker_id="ann"), turn(seq=3, speaker_id="ben")]
    before = pipeline.process(received(log), states)
    assert before.alerts[-1].state is AlertState.FIRING
    assert pipeline.flush_idle(states).alerts == []


def test_the_rise_of_the_risk_is_that_of_the_counsellor_who_speaks() -> None:
    both = processed(answers("ann", WARM, 6) + answers("ben", COLD, 2))
    alone = processed(answers("ben", COLD, 2))
    [ben], [only] = (list(result.sessions.values()) for result in (both, alone))
    assert ben.state.watch.risks == only.state.watch.risks


def test_what_is_usual_for_the_first_counsellor_says_nothing_of_the_next() -> None:
    class Book(NoBaselines):
        def of_counsellor(self, speaker_id: str) -> Baseline | None:
            return Baseline(risk=Usual(20, 0.1, 0.1)) if speaker_id == "ann" else None

    rules = rules_of(rule_text("unusual", when="has_baseline.counsellor.risk", for_="1 turn"))
    pipeline = Pipeline(ByText(), Policy(WindowPolicy(), rules), Book())
    log = [turn(seq=seq, speaker_id=("c", "ann")[seq % 2]) for seq in range(4)]
    log += [turn(seq=4), turn(seq=5, speaker_id="ben")]
    found = pipeline.process(received(log), {}).alerts
    assert [(alert.state.value, alert.seq) for alert in found] == [
        ("pending", 1),
        ("firing", 1),
        ("resolved", 5),
    ]


def test_the_first_ones_coldness_raises_no_alert_about_the_second() -> None:
    """Four cold answers are too few for the rule, and do not count for the next counsellor."""
    alerts = of_rule(processed(answers("ann", COLD, 4) + answers("ben", WARM, 8)), "low-empathy")
    assert [alert for alert in alerts if alert.state is AlertState.FIRING] == []


def test_few_turns_of_the_second_say_little() -> None:
    alerts = of_rule(processed(answers("ann", WARM, 8) + answers("ben", COLD, 4)), "low-empathy")
    assert alerts == []


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(["ann", "ben", "cleo"]), min_size=1, max_size=15))
def test_counsellors_who_take_turns_are_each_judged_by_their_own_answers(order: list[str]) -> None:
    said: list[Said] = []
    for name in order:
        said += answers(name, COLD if name == "ben" else WARM, 1)
    found = dict(zip([2 * n + 1 for n in range(len(order))], order, strict=True))
    alone = {
        name: risks(processed(answers(name, COLD if name == "ben" else WARM, order.count(name))))
        for name in set(order)
    }
    seen: dict[str, list[float | None]] = {}
    for seq, risk in processed(said).session_scores[0].risk_by_turn:
        seen.setdefault(found[seq], []).append(risk)
    assert seen == alone


def test_who_takes_over_is_not_judged_by_what_was_answered() -> None:
    result = processed([*answers("ann", WARM, 2), ("ben", "Hello, I am Ben.")])
    assert [seq for seq, _ in result.session_scores[0].risk_by_turn] == [1, 3]


def test_two_who_answer_the_same_words_are_each_judged() -> None:
    """As when a program's kind words come before a person's cold ones, under the same role."""
    said = [each for _ in range(4) for each in (("c", "I cry."), ("bot", WARM), ("ann", COLD))]
    result = processed(said)
    assert risks(result)[-1] == risks(processed(answers("ann", COLD, 3)))[-1]
    assert risks(result)[-2] == risks(processed(answers("bot", WARM, 4)))[-1]


def test_a_client_who_waits_is_the_successors_to_answer() -> None:
    said = [*answers("ann", COLD, 2), ("c", "I cry."), ("ben", WARM)]
    assert risks(processed(said))[-1] == risks(processed(answers("ben", WARM, 1)))[-1]
