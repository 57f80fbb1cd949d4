import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.contracts.events import Role
from stream_app.core.measures.aggregates import RECENT, Aggregates
from stream_app.core.measures.outcomes import OutcomeModel, features, outcome_risks
from tests.fakes import contribution

LEVELS = st.tuples(*[st.integers(0, 2)] * 3)
AFTER = 3


def test_means_shares_and_ratios() -> None:
    aggregates = Aggregates()
    aggregates.count_turn(Role.CLIENT, 30, late=False)
    for seq, (levels, kinds) in enumerate(
        [
            ((2, 0, 1), {"question": "open"}),
            ((1, 0, 0), {"question": "closed", "reflection": "simple"}),
            ((0, 0, 2), {"reflection": "complex"}),
            ((0, 0, 0), {"question": "none", "reflection": "complex"}),
        ]
    ):
        aggregates.count_turn(Role.COUNSELLOR, 5, late=False)
        aggregates.observe(contribution(seq, levels, **kinds), AFTER)
    summary = aggregates.summary()
    assert summary.counsellor_turns == 4
    assert summary.mechanisms["emotional_reactions"].mean == 0.75
    assert summary.mechanisms["emotional_reactions"].share == 0.5
    assert summary.mechanisms["interpretations"].share == 0.0
    assert summary.empathy_total_mean == 1.5
    assert summary.talk_share == 0.4
    assert summary.reflection_to_question == 1.5
    assert summary.complex_reflection_share == pytest.approx(2 / 3)
    assert summary.open_question_share == 0.5


def test_empty_aggregates_are_none_and_not_zero() -> None:
    summary = Aggregates().summary()
    assert summary.mechanisms == {}
    assert summary.talk_share is summary.reflection_to_question is summary.empathy_total_mean
    assert summary.talk_share is None


def test_the_recent_mean_covers_five_turns() -> None:
    aggregates = Aggregates()
    for seq in range(20):
        aggregates.observe(contribution(seq, (2 if seq >= 20 - RECENT else 0, 0, 0)), AFTER)
    mechanism = aggregates.summary().mechanisms["emotional_reactions"]
    assert (mechanism.recent_mean, mechanism.mean) == (2.0, 0.5)


@given(st.lists(st.tuples(LEVELS, LEVELS), min_size=1, max_size=30))
def test_replacing_provisional_scores_equals_adding_final_ones_only(
    turns: list[tuple[tuple[int, int, int], tuple[int, int, int]]],
) -> None:
    both, finals = Aggregates(), Aggregates()
    for seq, (provisional, _) in enumerate(turns):
        if seq >= AFTER:
            both.observe(contribution(seq - AFTER, turns[seq - AFTER][1]), AFTER)
        both.observe(contribution(seq, provisional), AFTER)
    for seq in range(max(0, len(turns) - AFTER), len(turns)):
        both.observe(contribution(seq, turns[seq][1]), AFTER)
    for seq, (_, final) in enumerate(turns):
        finals.observe(contribution(seq, final), AFTER)
    assert both == finals


def test_a_late_turn_counts_in_totals_but_not_as_recent() -> None:
    aggregates = Aggregates()
    for seq in (0, 1, 3, 4):
        aggregates.observe(contribution(seq), AFTER)
    aggregates.observe(contribution(2, (2, 2, 2)), AFTER, late=True)
    mechanism = aggregates.summary().mechanisms["explorations"]
    assert (mechanism.mean, mechanism.recent_mean) == (0.4, 0.0)


def test_risk_is_none_without_a_model_or_before_enough_turns() -> None:
    summary = Aggregates().summary()
    assert outcome_risks({}, summary, "a", None) == {}
    model = OutcomeModel(intercept=0.0, weights={}, domain="a")
    assert outcome_risks({"it": model}, summary, "a", None) == {}


def test_risk_is_the_logistic_function_of_the_weighted_features() -> None:
    aggregates = Aggregates()
    for seq in range(4):
        aggregates.observe(contribution(seq, (1, 0, 2)), AFTER)
    summary = aggregates.summary()
    weights = {"emotional_reactions_mean": -1.0, "explorations_recent": 0.5}
    model = OutcomeModel(intercept=0.25, weights=weights, domain="a")
    expected = 1 / (1 + math.exp(-(0.25 - 1.0 * 1 + 0.5 * 2)))
    assert outcome_risks({"it": model}, summary, "a", None)["it"] == pytest.approx(expected)
    assert set(model.weights) <= features(summary).keys()


@given(st.floats(allow_nan=False))
def test_risk_is_always_a_probability(intercept: float) -> None:
    model = OutcomeModel(intercept=intercept, weights={}, domain="a", min_counsellor_turns=0)
    found = outcome_risks({"it": model}, Aggregates().summary(), "a", None)
    assert 0.0 <= found["it"] <= 1.0
