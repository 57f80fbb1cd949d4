"""Low-empathy risk: the probability that the listener will rate the session low.

A logistic model over the aggregates so far. Its weights come with the bundle, fitted by
``python -m models.risk`` on sessions that were rated by the people who were listened to; a bundle
without weights gives no risk.
"""

import math

from msgspec import Struct

from stream_app.contracts.scores import MECHANISMS
from stream_app.core.aggregates import Summary


class RiskModel(Struct, frozen=True, forbid_unknown_fields=True):
    """``risk = sigmoid(intercept + sum(weight * feature))``; features as in ``features``."""

    intercept: float
    weights: dict[str, float]
    min_counsellor_turns: int = 3
    enter: float = 0.7
    exit: float = 0.5


def features(summary: Summary) -> dict[str, float]:
    """The inputs of the risk model; a ratio that has no denominator yet counts as 0."""
    values: dict[str, float] = {}
    for name in MECHANISMS:
        mechanism = summary.mechanisms.get(name)
        values[f"{name}_mean"] = mechanism.mean if mechanism else 0.0
        values[f"{name}_recent"] = mechanism.recent_mean if mechanism else 0.0
    values["talk_share"] = summary.talk_share or 0.0
    values["questions_per_turn"] = summary.questions_per_turn or 0.0
    values["open_question_share"] = summary.open_question_share or 0.0
    values["reflections_per_turn"] = summary.reflections_per_turn or 0.0
    values["complex_reflection_share"] = summary.complex_reflection_share or 0.0
    values["log_words_per_turn"] = math.log1p(summary.words_per_turn or 0.0)
    values["log_counsellor_turns"] = math.log1p(summary.counsellor_turns)
    return values


def low_empathy_risk(model: RiskModel | None, summary: Summary) -> float | None:
    """The risk in [0, 1], or None before ``min_counsellor_turns`` or without a model.

    >>> from stream_app.core.aggregates import Aggregates
    >>> low_empathy_risk(RiskModel(0.0, {}, min_counsellor_turns=0), Aggregates().summary())
    0.5
    """
    if model is None or summary.counsellor_turns < model.min_counsellor_turns:
        return None
    values = features(summary)
    logit = model.intercept + sum(model.weights[name] * values[name] for name in model.weights)
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, logit))))
