"""The inputs of the risk model, one by one."""

import math

import pytest
from msgspec.structs import replace

from stream_app.contracts.events import Role
from stream_app.core.aggregates import Aggregates, Contribution
from stream_app.core.risk import RiskModel, features, low_empathy_risk


def session() -> Aggregates:
    """Two counsellor turns of ten words each beside sixty words of the client."""
    aggregates = Aggregates()
    aggregates.count_turn(Role.CLIENT, 60, late=False)
    for seq, (levels, question, reflection) in enumerate(
        [((2, 0, 1), "open", "complex"), ((1, 0, 0), "closed", None)]
    ):
        aggregates.count_turn(Role.COUNSELLOR, 10, late=False)
        aggregates.observe(Contribution(seq, levels, question, reflection), after=3)
    return aggregates


def test_each_feature_is_what_its_name_says() -> None:
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


def test_a_session_that_has_not_begun_has_zeros_only() -> None:
    assert set(features(Aggregates().summary()).values()) == {0.0}


def test_each_weight_moves_the_risk_in_its_direction() -> None:
    summary = session().summary()
    for name, value in features(summary).items():
        risk = low_empathy_risk(RiskModel(0.0, {name: -1.0}, min_counsellor_turns=2), summary)
        assert risk == pytest.approx(1 / (1 + math.exp(value)))


def test_the_risk_waits_for_exactly_the_turns_that_the_model_asks_for() -> None:
    summary = session().summary()
    assert low_empathy_risk(RiskModel(0.0, {}, min_counsellor_turns=2), summary) == 0.5
    assert low_empathy_risk(RiskModel(0.0, {}, min_counsellor_turns=3), summary) is None


def test_a_session_that_has_ended_is_judged_by_the_closing_model_if_there_is_one() -> None:
    summary = session().summary()
    running = RiskModel(0.0, {}, min_counsellor_turns=2)
    both = replace(running, closing=RiskModel(math.log(3), {}, min_counsellor_turns=9))
    assert low_empathy_risk(both, summary) == 0.5
    assert low_empathy_risk(both, summary, ended=True) == pytest.approx(0.75)
    assert low_empathy_risk(running, summary, ended=True) == 0.5
    patient = replace(both, min_counsellor_turns=3)
    assert low_empathy_risk(patient, summary, ended=True) is None


@pytest.mark.parametrize(("intercept", "side"), [(1e9, 1.0), (-1e9, 0.0)])
def test_an_extreme_logit_does_not_overflow(intercept: float, side: float) -> None:
    risk = low_empathy_risk(RiskModel(intercept, {}, 0), Aggregates().summary())
    assert risk == pytest.approx(side, abs=1e-9)
