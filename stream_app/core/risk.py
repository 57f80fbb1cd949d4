"""Low-empathy risk: the probability that the listener will rate the session low.

An additive model over the aggregates so far: every feature adds its own part to the log-odds, by a
weight that may change with the number of turns (a varying-coefficient model, Hastie & Tibshirani
1993). The numbers come with the bundle, fitted by ``python -m models.sessions`` on sessions that
were rated by the people who were listened to; a bundle without them gives no risk.
"""

import math
from functools import cached_property
from typing import Any, NamedTuple

from msgspec import Struct, field

from stream_app.contracts.scores import MECHANISMS
from stream_app.core.aggregates import SpeechSummary, Summary

USUAL_TURNS = 10
"""``turn_weights`` count from so many counsellor turns."""


class Term(NamedTuple):
    """One feature of a model: its name, bounds and weights."""

    name: str
    least: float
    most: float
    weight: float
    turn_weight: float


class RiskModel(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """``risk = sigmoid(intercept + sum(part of feature))``; features as in ``features``.

    The part of feature x after n counsellor turns is ``weights * x + turn_weights * t * x`` with
    t = log((1 + n) / (1 + 10)), x held within ``bounds``. ``alerts`` records the operating points
    that ``enter`` was chosen from. ``closing`` is for a session that has ended: it was fitted on
    whole sessions, and the client's last words count.
    """

    intercept: float
    weights: dict[str, float]
    min_counsellor_turns: int = 3
    enter: float = 0.7
    exit: float = 0.5
    turn_weights: dict[str, float] = field(default_factory=dict)
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    closing: "RiskModel | None" = None

    @cached_property
    def terms(self) -> list[Term]:
        """The features in the order in which their parts are added up."""
        return [
            Term(
                name,
                *self.bounds.get(name, (-math.inf, math.inf)),
                self.weights.get(name, 0.0),
                self.turn_weights.get(name, 0.0),
            )
            for name in sorted(self.weights.keys() | self.turn_weights.keys())
        ]


def features(summary: Summary) -> dict[str, float]:
    """The inputs of the risk model; what has no denominator yet counts as 0."""
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
    values |= _speech("client", summary.client) | _speech("counsellor", summary.counsellor)
    for name, found in summary.evidence.items():
        values[f"{name}_mean"] = found.mean
        values[f"{name}_recent"] = found.recent
    return values


def _speech(side: str, speech: SpeechSummary) -> dict[str, float]:
    return {
        f"{side}_log_words": speech.log_mean,
        f"{side}_mean_log_words": speech.mean_log,
        f"{side}_short_share": speech.short_share,
        f"{side}_log_longest": speech.log_longest,
        f"{side}_log_recent_words": speech.log_recent,
        f"{side}_repeat_share": speech.repeat_share,
        f"{side}_log_turns": math.log1p(speech.turns),
    }


def log_odds(model: RiskModel, values: dict[str, float]) -> float:
    """The sum of the parts; a feature that is not there yet (a head has not scored) counts as 0."""
    progress = values["log_counsellor_turns"] - math.log1p(USUAL_TURNS)
    total = model.intercept
    for name, least, most, weight, turn_weight in model.terms:
        x = values.get(name, 0.0)
        if x < least:
            x = least
        elif x > most:
            x = most
        total += x * (weight + progress * turn_weight)
    return total


def low_empathy_risk(
    model: RiskModel | None, summary: Summary, *, ended: bool = False
) -> float | None:
    """The risk in [0, 1], or None before ``min_counsellor_turns`` or without a model.

    ``ended``: the session is over, and the summary is of all of it.

    >>> from stream_app.core.aggregates import Aggregates
    >>> low_empathy_risk(RiskModel(0.0, {}, min_counsellor_turns=0), Aggregates().summary())
    0.5
    """
    if model is None or summary.counsellor_turns < model.min_counsellor_turns:
        return None
    if ended and model.closing is not None:
        model = model.closing
    logit = log_odds(model, features(summary))
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, logit))))
