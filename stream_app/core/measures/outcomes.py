"""Outcome risks: predicted probabilities of people's judgements of a session.

An outcome is a person's judgement of a whole session (``chat_failed``, ``low_satisfaction``,
``low_mi_quality``; see `docs/outcomes.md`). Its risk predicts that judgement and does not measure
empathy. Every outcome has an additive model over the aggregates so far: each feature adds a term to
the log-odds, with a weight that may change with the number of turns (a varying-coefficient model,
Hastie & Tibshirani 1993). The models come with the bundle, fitted by ``python -m models.outcomes
fit``; each applies to one domain.
"""

import math
from collections.abc import Mapping
from functools import cache, cached_property
from typing import NamedTuple

from msgspec import Struct, field

from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures.aggregates import (
    UNASKED_ADVICE,
    EvidenceSummary,
    SpeechSummary,
    Summary,
)

USUAL_TURNS = 10
"""``turn_weights`` are relative to this number of counsellor turns."""
LARGEST_LOGIT = 30.0


class Term(NamedTuple):
    """One feature of a model: its name, bounds and weights."""

    name: str
    least: float
    most: float
    weight: float
    turn_weight: float


class OutcomeModel(Struct, frozen=True, forbid_unknown_fields=True, dict=True, kw_only=True):
    """``risk = sigmoid(intercept + sum(term of each feature))``; features as in ``features``.

    The term of feature x after n counsellor turns is ``weights * x + turn_weights * t * x`` with t
    = log((1 + n) / (1 + 10)), x clipped to ``bounds``. ``domain`` and, unless it is None,
    ``approach`` are the sessions that the model applies to. ``closing`` is used after a session's
    end: it was fitted on whole sessions, including the client's last words.
    """

    intercept: float
    weights: dict[str, float]
    domain: str
    approach: str | None = None
    min_counsellor_turns: int = 3
    turn_weights: dict[str, float] = field(default_factory=dict)
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)
    closing: "OutcomeModel | None" = None

    @cached_property
    def terms(self) -> list[Term]:
        """The features in summation order."""
        return [
            Term(
                name,
                *self.bounds.get(name, (-math.inf, math.inf)),
                self.weights.get(name, 0.0),
                self.turn_weights.get(name, 0.0),
            )
            for name in sorted(self.weights.keys() | self.turn_weights.keys())
        ]

    def applies(self, domain: str | None, approach: str | None) -> bool:
        """Whether the model was fitted on such sessions."""
        return self.domain == domain and self.approach in (None, approach)


def applicable(
    models: Mapping[str, OutcomeModel], domain: str | None, approach: str | None
) -> dict[str, OutcomeModel]:
    """The models fitted on such sessions, by name."""
    return {name: model for name, model in models.items() if model.applies(domain, approach)}


def features(summary: Summary) -> dict[str, float]:
    """The inputs of the outcome models; without a denominator they are 0.

    Names that begin with ``conduct.`` are rates and shares by the manual of motivational
    interviewing, from probabilities instead of decisions; they appear once their heads have scored
    a turn.
    """
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
        mean, recent = _evidence_names(name)
        values[mean] = found.mean
        values[recent] = found.recent
    return values | _conduct(summary)


@cache
def _evidence_names(head: str) -> tuple[str, str]:
    """Names of the two inputs of one kind of evidence."""
    return f"{head}_mean", f"{head}_recent"


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


def _conduct(summary: Summary) -> dict[str, float]:
    """Rates per counsellor turn and smoothed shares, from the expected number of each behaviour.

    MI-consistent are reflections and open questions, inconsistent is advice not preceded by a
    question or permission (MISC 2.1, section "MI-consistent and MI-inconsistent responses").
    """
    heads = summary.evidence
    found: dict[str, float] = {}
    n = summary.counsellor_turns
    if "question.open" in heads and "reflection.simple" in heads:
        opened, closed = _expected(heads, n, "question.open", "question.closed")
        simple, complex_ = _expected(heads, n, "reflection.simple", "reflection.complex")
        unasked, information = _expected(heads, n, UNASKED_ADVICE, "input.information")
        [advice] = _expected(heads, n, "input.advice")
        reflections, questions = simple + complex_, opened + closed
        found["conduct.reflections_per_turn"] = reflections / n
        found["conduct.complex_share"] = _share(complex_, reflections)
        found["conduct.log_reflection_to_question"] = math.log(
            (reflections + 0.5) / (questions + 0.5)
        )
        found["conduct.open_share"] = _share(opened, questions)
        found["conduct.consistent_share"] = _share(
            reflections + opened, reflections + opened + unasked
        )
        found["conduct.unasked_advice_per_turn"] = unasked / n
        found["conduct.input_share"] = (advice + information) / n
    if "talk_type.change" in heads:
        change, sustain = _expected(
            heads, summary.client.turns, "talk_type.change", "talk_type.sustain"
        )
        found["conduct.change_share"] = _share(change, change + sustain)
    return found


def _expected(heads: Mapping[str, EvidenceSummary], turns: int, *names: str) -> list[float]:
    """The expected number of turns with each behaviour."""
    return [heads[name].mean * turns if name in heads else 0.0 for name in names]


def _share(part: float, whole: float) -> float:
    """``part / whole`` with half a turn added to either side: one half without data.

    >>> _share(0.0, 0.0), _share(4.5, 9.0), _share(2.5, 3.0)
    (0.5, 0.5, 0.75)
    """
    return (part + 0.5) / (whole + 1.0)


def log_odds(model: OutcomeModel, values: Mapping[str, float]) -> float:
    """Sum of the terms; a missing feature (its head has not scored yet) counts as 0."""
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


def probability(logit: float) -> float:
    """The logistic function, safe for any finite log-odds.

    >>> probability(0.0), round(probability(1e9), 9), probability(1e9) < 1.0
    (0.5, 1.0, True)
    """
    return 1.0 / (1.0 + math.exp(-max(-LARGEST_LOGIT, min(LARGEST_LOGIT, logit))))


def outcome_risks(
    models: Mapping[str, OutcomeModel],
    summary: Summary,
    domain: str | None,
    approach: str | None,
    *,
    ended: bool = False,
) -> dict[str, float]:
    """The risk of every outcome that applies to the session, in [0, 1], by name.

    Empty if no model applies, and before its ``min_counsellor_turns``. ``ended``: the session has
    ended, and the summary covers all of it.

    >>> from stream_app.core.measures.aggregates import Aggregates
    >>> model = OutcomeModel(intercept=0.0, weights={}, domain="x", min_counsellor_turns=0)
    >>> outcome_risks({"failed": model}, Aggregates().summary(), "x", None)
    {'failed': 0.5}
    >>> outcome_risks({"failed": model}, Aggregates().summary(), None, None)
    {}
    """
    due = {
        name: (ended and model.closing) or model
        for name, model in applicable(models, domain, approach).items()
        if summary.counsellor_turns >= model.min_counsellor_turns
    }
    if not due:
        return {}
    values = features(summary)
    return {name: probability(log_odds(model, values)) for name, model in due.items()}
