"""Outcome risks: each input, and the sessions that each model applies to."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stream_app.contracts.events import Role
from stream_app.core.measures.aggregates import MILLION, Aggregates, Contribution
from stream_app.core.measures.outcomes import OutcomeModel, features, outcome_risks
from tests.fakes import contribution

AFTER = 3
INTERVIEWING = "motivational-interviewing"


def model(intercept: float = 0.0, weights: dict[str, float] | None = None, **parts) -> OutcomeModel:
    given = {"domain": "peer-support", "min_counsellor_turns": 2, **parts}
    return OutcomeModel(intercept=intercept, weights=weights or {}, **given)


def risk(of: OutcomeModel, aggregates: Aggregates, *, ended: bool = False) -> float | None:
    found = outcome_risks({"it": of}, aggregates.summary(), "peer-support", None, ended=ended)
    return found.get("it")


def session() -> Aggregates:
    """Two counsellor turns of ten words each, and sixty words of the client."""
    aggregates = Aggregates()
    aggregates.count_turn(Role.CLIENT, 60, late=False)
    for seq, (levels, question, reflection) in enumerate(
        [((2, 0, 1), "open", "complex"), ((1, 0, 0), "closed", None)]
    ):
        aggregates.count_turn(Role.COUNSELLOR, 10, late=False)
        aggregates.observe(contribution(seq, levels, question, reflection), after=3)
    return aggregates


def test_each_feature_has_the_value_of_its_name() -> None:
    assert features(session().summary()) == pytest.approx(
        {
            "emotional_reactions_mean": 1.5,
            "emotional_reactions_recent": 1.5,
            "interpretations_mean": 0.0,
            "interpretations_recent": 0.0,
            "explorations_mean": 0.5,
            "explorations_recent": 0.5,
            "talk_share": 0.25,
            "questions_per_turn": 1.0,
            "open_question_share": 0.5,
            "reflections_per_turn": 0.5,
            "complex_reflection_share": 1.0,
            "log_words_per_turn": math.log(11),
            "log_counsellor_turns": math.log(3),
            "client_log_words": math.log(61),
            "client_mean_log_words": math.log(61),
            "client_short_share": 0.0,
            "client_log_longest": math.log(61),
            "client_log_recent_words": math.log(61),
            "client_repeat_share": 0.0,
            "client_log_turns": math.log(2),
            "counsellor_log_words": math.log(11),
            "counsellor_mean_log_words": math.log(11),
            "counsellor_short_share": 0.0,
            "counsellor_log_longest": math.log(11),
            "counsellor_log_recent_words": math.log(11),
            "counsellor_repeat_share": 0.5,
            "counsellor_log_turns": math.log(3),
        }
    )


def test_an_empty_session_has_only_zeros() -> None:
    assert set(features(Aggregates().summary()).values()) == {0.0}


def test_each_weight_moves_the_risk_in_its_direction() -> None:
    for name, value in features(session().summary()).items():
        expected = 1 / (1 + math.exp(value))
        assert risk(model(0.0, {name: -1.0}), session()) == pytest.approx(expected)


def test_the_risk_is_known_from_the_models_minimum_of_turns() -> None:
    assert risk(model(min_counsellor_turns=2), session()) == 0.5
    assert risk(model(min_counsellor_turns=3), session()) is None


def test_an_ended_session_uses_the_closing_model_if_present() -> None:
    both = model(closing=model(math.log(3), min_counsellor_turns=9))
    assert risk(both, session()) == 0.5
    assert risk(both, session(), ended=True) == pytest.approx(0.75)
    assert risk(model(), session(), ended=True) == 0.5
    assert risk(replace(both, min_counsellor_turns=3), session(), ended=True) is None


@pytest.mark.parametrize(("intercept", "side"), [(1e9, 1.0), (-1e9, 0.0)])
def test_an_extreme_logit_does_not_overflow(intercept: float, side: float) -> None:
    found = risk(model(intercept, min_counsellor_turns=0), Aggregates())
    assert found == pytest.approx(side, abs=1e-9)


@pytest.mark.parametrize(
    ("domain", "approach", "names"),
    [
        ("peer-support", None, {"chat_failed"}),
        ("peer-support", INTERVIEWING, {"chat_failed"}),
        ("counselling", None, set()),
        ("counselling", INTERVIEWING, {"low_mi_quality"}),
        ("customer-service", None, {"low_satisfaction"}),
        (None, None, set()),
        (None, INTERVIEWING, set()),
        ("elsewhere", INTERVIEWING, set()),
    ],
)
def test_a_model_applies_only_to_its_domain_and_approach(
    domain: str | None, approach: str | None, names: set[str]
) -> None:
    models = {
        "chat_failed": model(),
        "low_satisfaction": model(domain="customer-service"),
        "low_mi_quality": model(domain="counselling", approach=INTERVIEWING),
    }
    assert outcome_risks(models, session().summary(), domain, approach).keys() == names


def item(seq: int, asks: float = 0.0, advises: float = 0.0, reflects: float = 0.0) -> Contribution:
    given = {
        "question.open": asks / 2,
        "question.closed": asks / 2,
        "reflection.simple": reflects / 4,
        "reflection.complex": reflects * 3 / 4,
        "input.advice": advises,
        "input.information": 0.0,
    }
    return contribution(seq, evidence={k: round(v * MILLION) for k, v in given.items()})


def test_advice_is_unasked_unless_the_previous_turn_has_a_question() -> None:
    aggregates = Aggregates()
    for seq, (asks, advises) in enumerate([(0.0, 0.5), (0.75, 0.0), (0.0, 1.0), (0.5, 1.0)]):
        aggregates.observe(item(seq, asks, advises), AFTER)
    found = features(aggregates.summary())
    assert found["input.advice_unasked_mean"] == pytest.approx((0.5 + 0.0 + 0.25 + 1.0) / 4)
    assert found["conduct.unasked_advice_per_turn"] == found["input.advice_unasked_mean"]
    assert found["conduct.input_share"] == pytest.approx(2.5 / 4)


def test_conduct_counts_expected_behaviours() -> None:
    aggregates = Aggregates()
    for seq in range(8):
        aggregates.observe(item(seq, asks=0.5, advises=0.25, reflects=1.0), AFTER)
    found = features(aggregates.summary())
    unasked = 0.25 + 7 * 0.25 * 0.5
    assert found["conduct.reflections_per_turn"] == pytest.approx(1.0)
    assert found["conduct.complex_share"] == pytest.approx(6.5 / 9)
    assert found["conduct.open_share"] == pytest.approx(2.5 / 5)
    assert found["conduct.log_reflection_to_question"] == pytest.approx(math.log(8.5 / 4.5))
    assert found["conduct.consistent_share"] == pytest.approx(10.5 / (11 + unasked))
    assert "conduct.change_share" not in found


CHANCES = st.tuples(st.floats(0, 1), st.floats(0, 1))


@given(st.lists(st.tuples(CHANCES, CHANCES), min_size=1, max_size=20))
def test_unasked_advice_depends_only_on_final_scores(
    turns: list[tuple[tuple[float, float], tuple[float, float]]],
) -> None:
    """A question that the final score adds or removes also affects the next turn."""
    both, finals = Aggregates(), Aggregates()
    for seq, (provisional, _) in enumerate(turns):
        if seq >= AFTER:
            both.observe(item(seq - AFTER, *turns[seq - AFTER][1]), AFTER)
        both.observe(item(seq, *provisional), AFTER)
    for seq in range(max(0, len(turns) - AFTER), len(turns)):
        both.observe(item(seq, *turns[seq][1]), AFTER)
    for seq, (_, final) in enumerate(turns):
        finals.observe(item(seq, *final), AFTER)
    assert both == finals
    unasked = sum(
        advises * (1 - (turns[seq - 1][1][0] if seq else 0.0))
        for seq, (_, (_, advises)) in enumerate(turns)
    )
    found = features(both.summary())["input.advice_unasked_mean"]
    assert found == pytest.approx(unasked / len(turns), abs=1e-5)
