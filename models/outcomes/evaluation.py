"""Evaluate outcome risks on sessions held out from all training.

A session's risk comes from the fold that left it out: encoder, heads, outcome models, scaling.
AnnoMI's sessions of one topic are alike, so whole topics are held out instead, repeatedly; no head
learns from AnnoMI's quality.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.model_selection import StratifiedGroupKFold

from models.data.rated_sessions import RatedSession
from models.evaluate.replay import Trajectory
from models.evaluate.text_baseline import cross_fitted_words, said_by
from models.labels import CLIENT, COUNSELLOR, OUTCOME_HEADS
from models.outcomes.family import (
    CLOSING,
    Additive,
    Points,
    Recipe,
    fit_calibrated,
    is_conduct,
    stack,
    usable,
)
from models.outcomes.folds import Collected
from models.outcomes.labels import LOW_MI_QUALITY, SPECS, OutcomeSpec, rating, slices
from models.outcomes.measure import (
    TOLERANCE,
    at_end,
    calibration,
    of_slice,
    paired_auroc,
    rank_correlation,
)

EARLY = (6, 10)
SPLITS, REPEATS = 5, 5
TARGETS = {"chat_failed": 0.83, "low_satisfaction": 0.71, "low_mi_quality": 0.93}
ABLATIONS: dict[str, Recipe] = {
    "conduct alone": replace(CLOSING, keep=is_conduct),
    "without the outcome heads": replace(
        CLOSING, keep=lambda name: usable(name) and not name.startswith(OUTCOME_HEADS)
    ),
    "outcome heads alone": replace(CLOSING, keep=lambda name: name.startswith(OUTCOME_HEADS)),
    "every outcome on its own": replace(CLOSING, shared=False),
}
PROTOCOL = {
    "nesting": "a session's risk is of the fold that left it out: it is unknown to the encoder, to "
    "all heads, to the outcome models and to their scaling; for low_mi_quality whole topics are "
    f"held out, {SPLITS} parts, mean log-odds of {REPEATS} repetitions",
    "inputs": "stream_app.core.outcomes.features through the service's pipeline, without counts of "
    "turns; of sessions that the models learn from, outputs of heads that did not learn from them",
    "end": "the closing model, fitted on whole sessions",
    "running": "the model of running sessions, after so many counsellor turns, on sessions that "
    "have as many",
    "equal length": "only pairs of sessions whose numbers of turns differ by at most "
    f"{TOLERANCE:.0%} of the larger",
    "intervals": "95 %, sessions resampled",
}


@dataclass
class Series:
    """The log-odds of one session after each counsellor turn, and after its end."""

    running: NDArray[np.float64]
    closing: float


def examples(
    found: Collected, seen: Mapping[int, Trajectory], keep: set[int], *, closing: bool
) -> dict[str, Points]:
    """Training points of every outcome's sessions among `keep`."""
    return {
        name: stack(
            seen,
            {i: y for i, y in truth.items() if i in keep},
            found.names,
            found.groups,
            closing=closing,
        )
        for name, truth in found.truth.items()
    }


def fit_both(
    found: Collected, seen: Mapping[int, Trajectory], keep: set[int]
) -> tuple[dict[str, Additive], dict[str, Additive]]:
    """Fit the running and the closing models."""
    running = examples(found, seen, keep, closing=False)
    ended = examples(found, seen, keep, closing=True)
    return (
        fit_calibrated(running, found.names, Recipe()),
        fit_calibrated(ended, found.names, CLOSING),
    )


def shipped(found: Collected) -> tuple[dict[str, Additive], dict[str, Additive]]:
    """Fit the models to ship on all sessions, with the features of the fold that left each out."""
    seen = found.left_out()
    return fit_both(found, seen, set(seen))


def out_of_fold(found: Collected, sessions: list[RatedSession]) -> dict[str, dict[int, Series]]:
    """By outcome, log-odds of every session of its domain from the fold that left it out."""
    series: dict[str, dict[int, Series]] = {spec.name: {} for spec in SPECS}
    for fold, seen in found.by_fold.items():
        keep = {i for i in seen if found.own.get(i) != fold}
        running, ended = fit_both(found, seen, keep)
        for spec in SPECS:
            if spec.name not in running or spec.name not in ended:
                continue
            for i, item in seen.items():
                if found.own.get(i) == fold and sessions[i].source in spec.sources:
                    series[spec.name][i] = Series(
                        predicted(running[spec.name], found.names, item.points),
                        float(predicted(ended[spec.name], found.names, item.closing[None])[0]),
                    )
    return series


def closing_scores(
    found: Collected, sessions: list[RatedSession], recipe: Recipe
) -> dict[str, dict[int, float]]:
    """As `out_of_fold`, but at the end of the sessions alone; whole topics held out for AnnoMI."""
    scores: dict[str, dict[int, float]] = {spec.name: {} for spec in SPECS}
    for fold, seen in found.by_fold.items():
        keep = {i for i in seen if found.own.get(i) != fold}
        models = fit_calibrated(examples(found, seen, keep, closing=True), found.names, recipe)
        for spec in SPECS:
            if spec.name == LOW_MI_QUALITY or spec.name not in models:
                continue
            for i, item in seen.items():
                if found.own.get(i) == fold and sessions[i].source in spec.sources:
                    [value] = predicted(models[spec.name], found.names, item.closing[None])
                    scores[spec.name][i] = float(value)
    scores[LOW_MI_QUALITY] = topics_held_out(found, recipe)
    return scores


def topics_held_out(found: Collected, recipe: Recipe = CLOSING) -> dict[int, float]:
    """Mean log-odds of AnnoMI's sessions over repeated splits of whole topics."""
    seen = found.left_out()
    truth = {i: y for i, y in found.truth[LOW_MI_QUALITY].items() if i in seen}
    total = dict.fromkeys(truth, 0.0)
    times = dict.fromkeys(truth, 0)
    for seed in range(REPEATS):
        for test in topic_parts(truth, found.groups, seed):
            points = examples(found, seen, set(seen) - set(test), closing=True)
            model = fit_calibrated(points, found.names, recipe).get(LOW_MI_QUALITY)
            if model is None:
                continue
            for i in test:
                [value] = predicted(model, found.names, seen[i].closing[None])
                total[i] += float(value)
                times[i] += 1
    return {i: total[i] / times[i] for i in truth if times[i]}


def topic_parts(truth: Mapping[int, bool], groups: list[str], seed: int) -> list[list[int]]:
    """Parts of whole topics, each with about the same number of sessions of either class."""
    numbers = np.array(sorted(truth))
    y = np.array([truth[i] for i in numbers.tolist()], bool)
    splits = min(SPLITS, int(y.sum()), int((~y).sum()))
    if splits < 2:
        return []
    cut = StratifiedGroupKFold(splits, shuffle=True, random_state=seed)
    topic = [groups[i] for i in numbers.tolist()]
    return [numbers[test].tolist() for _, test in cut.split(numbers, y, topic)]


def predicted(model: Additive, names: list[str], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-odds of points with all features."""
    columns = [names.index(name) for name in model.names]
    return model.log_odds(x[:, columns], x[:, names.index("log_counsellor_turns")])


def report(
    found: Collected, sessions: list[RatedSession], *, ablations: bool = True
) -> dict[str, Any]:
    """All figures of all outcomes."""
    series = out_of_fold(found, sessions)
    ends = {name: {i: s.closing for i, s in own.items()} for name, own in series.items()}
    by_session = ends[LOW_MI_QUALITY]
    ends[LOW_MI_QUALITY] = topics_held_out(found)
    others = (
        {name: closing_scores(found, sessions, recipe) for name, recipe in ABLATIONS.items()}
        if ablations
        else {}
    )
    outcomes = {}
    for spec in SPECS:
        if not ends[spec.name]:
            continue
        rows = {name: scores[spec.name] for name, scores in others.items() if scores[spec.name]}
        if spec.name == LOW_MI_QUALITY and by_session:
            rows["sessions held out instead of topics"] = by_session
        outcomes[spec.name] = _outcome(
            spec, found, sessions, series[spec.name], ends[spec.name], rows
        )
    return {"protocol": PROTOCOL, "folds": sorted(found.by_fold), "outcomes": outcomes}


def _outcome(
    spec: OutcomeSpec,
    found: Collected,
    sessions: list[RatedSession],
    series: Mapping[int, Series],
    end: Mapping[int, float],
    others: Mapping[str, Mapping[int, float]],
) -> dict[str, Any]:
    truth = {i: y for i, y in found.truth[spec.name].items() if i in end}
    turns = {i: len(session.turns) for i, session in enumerate(sessions)}
    words = text_baselines(spec, truth, found, sessions)
    return {
        "domain": spec.domain,
        "approach": spec.approach,
        "label": spec.label,
        "other": spec.other,
        "target": TARGETS[spec.name],
        "sessions": len(truth),
        "positive": sum(truth.values()),
        **at_end(truth, end, turns),
        "running": {f"after_{k}": _running(series, truth, k) for k in EARLY},
        "within": {part.name: of_slice(part, end, turns) for part in slices(spec, sessions)},
        "spearman": _correlations(spec, end, sessions),
        "calibration": calibration(truth, {i: float(expit(v)) for i, v in end.items()}),
        "beside": {
            name: at_end(truth, score, turns)
            for name, score in {
                **others,
                "number of turns alone (fewer turns, higher risk)": {i: -turns[i] for i in truth},
                **words,
            }.items()
        },
    }


def _running(series: Mapping[int, Series], truth: Mapping[int, bool], after: int) -> dict[str, Any]:
    known = [i for i in truth if i in series and len(series[i].running) >= after]
    y = np.array([truth[i] for i in known], bool)
    return paired_auroc(y, np.array([series[i].running[after - 1] for i in known], float))


def _correlations(
    spec: OutcomeSpec, end: Mapping[int, float], sessions: list[RatedSession]
) -> dict[str, Any]:
    """Correlations with the ratings by source, and pooled where sources share a scale."""
    rated = {i: value for i in end if (value := rating(sessions[i])) is not None}
    parts = {
        str(source): {i: value for i, value in rated.items() if sessions[i].source == source}
        for source in spec.sources
    }
    found = {source: rank_correlation(end, part) for source, part in parts.items() if part}
    return {**found, "all": rank_correlation(end, rated)} if len(found) > 1 else found


def text_baselines(
    spec: OutcomeSpec, truth: Mapping[int, bool], found: Collected, sessions: list[RatedSession]
) -> dict[str, dict[int, float]]:
    """The baseline: tf-idf of each side's text, with the same sessions held out."""
    if spec.name == LOW_MI_QUALITY:
        parts = topic_parts(truth, found.groups, 0)
        part = {i: k for k, members in enumerate(parts) for i in members}
    else:
        part = {i: found.own[i] for i in truth}
    known = sorted(i for i in truth if i in part)
    y = np.array([truth[i] for i in known], bool)
    fold = np.array([part[i] for i in known], int)
    scores = {}
    for role, side in ((COUNSELLOR, "counsellor"), (CLIENT, "client")):
        texts = np.array([said_by(sessions[i], role) for i in known])
        if (score := cross_fitted_words(texts, y, fold)) is not None:
            scores[f"tf-idf of the {side}'s words"] = dict(zip(known, score.tolist(), strict=True))
    return scores
