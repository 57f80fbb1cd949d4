"""Figures of an outcome risk: AUROC over chosen pairs, rank correlation, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.evaluate import resampling
from models.evaluate.resampling import interval, spearman
from models.outcomes.labels import Slice

Floats = NDArray[np.float64]
TOLERANCE = 0.1
"""Maximum relative difference between the turn counts of sessions of equal length."""
BINS = 10


def paired_auroc(
    truth: NDArray[np.bool_],
    score: Floats,
    allowed: NDArray[np.bool_] | None = None,
    seed: int = 17,
) -> dict[str, Any]:
    """AUROC over the allowed pairs, with a 95 % interval that resamples sessions.

    `allowed` [sessions with the outcome, sessions without]: None allows all pairs, which gives the
    usual area under the ROC curve (Mann & Whitney 1947).

    >>> y, s = np.array([True, False, False]), np.array([0.5, 0.2, 0.5])
    >>> paired_auroc(y, s)["value"], paired_auroc(y, s, np.array([[True, False]]))["value"]
    (0.75, 1.0)
    """
    ones, zeros = np.flatnonzero(truth), np.flatnonzero(~truth)
    counts = {"sessions": len(truth), "positive": len(ones)}
    pairs = np.ones((len(ones), len(zeros)), bool) if allowed is None else allowed
    total = int(pairs.sum())
    if not total:
        return {**counts, "pairs": 0, "value": None, "low": None, "high": None}
    distance = score[ones][:, None] - score[zeros][None, :]
    won = np.where(pairs, (distance > 0) + 0.5 * (distance == 0), 0.0)
    mask = pairs.astype(float)
    chance = np.random.default_rng(seed)
    drawn = []
    for _ in range(resampling.RESAMPLES):
        times = np.bincount(chance.integers(len(truth), size=len(truth)), minlength=len(truth))
        a, b = times[ones].astype(float), times[zeros].astype(float)
        if weight := float(a @ mask @ b):
            drawn.append(float(a @ won @ b) / weight)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return {
        **counts,
        "pairs": total,
        "value": float(won.sum()) / total,
        "low": float(low),
        "high": float(high),
    }


def equally_long(truth: NDArray[np.bool_], turns: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Pairs (with the outcome, without) whose turn counts differ by at most `TOLERANCE`."""
    a, b = turns[truth][:, None], turns[~truth][None, :]
    return np.asarray(np.abs(a - b) <= TOLERANCE * np.maximum(a, b))


def at_end(
    truth: Mapping[int, bool], score: Mapping[int, float], turns: Mapping[int, int]
) -> dict[str, Any]:
    """AUROC of all sessions, and of pairs of equal length."""
    known = [i for i in truth if i in score]
    y = np.array([truth[i] for i in known], bool)
    s = np.array([score[i] for i in known], float)
    long = equally_long(y, np.array([turns[i] for i in known], np.int64))
    return {"auroc": paired_auroc(y, s), "equal_length": paired_auroc(y, s, long)}


def of_slice(part: Slice, score: Mapping[int, float], turns: Mapping[int, int]) -> dict[str, Any]:
    """AUROC of a comparison over pairs of one stratum, and over those of equal length."""
    known = [i for i in part.truth if i in score]
    y = np.array([part.truth[i] for i in known], bool)
    s = np.array([score[i] for i in known], float)
    stratum = np.array([part.stratum[i] for i in known], str)
    same = stratum[y][:, None] == stratum[~y][None, :]
    long = equally_long(y, np.array([turns[i] for i in known], np.int64))
    return {
        "auroc": paired_auroc(y, s, same),
        "equal_length": paired_auroc(y, s, same & long),
    }


def rank_correlation(score: Mapping[int, float], ratings: Mapping[int, float]) -> dict[str, Any]:
    """Spearman of the risk with the session rating; a good risk correlates negatively."""
    known = [i for i in ratings if i in score]
    s = np.array([score[i] for i in known], float)
    r = np.array([ratings[i] for i in known], float)
    if len(known) < 3:
        return {"sessions": len(known), "value": None, "low": None, "high": None}
    found = interval(np.arange(len(known)), lambda rows: spearman(s[rows], r[rows]))
    return {"sessions": len(known), **found}


def calibration(truth: Mapping[int, bool], risk: Mapping[int, float]) -> dict[str, Any]:
    """Brier score, expected calibration error and bins of equal size."""
    known = [i for i in truth if i in risk]
    p = np.array([risk[i] for i in known], float)
    y = np.array([truth[i] for i in known], float)
    parts = np.array_split(np.argsort(p, kind="stable"), max(1, min(BINS, len(p) // 10)))
    bins = [
        {"n": len(k), "risk": float(p[k].mean()), "share": float(y[k].mean())}
        for k in parts
        if len(k)
    ]
    base = float(y.mean())
    return {
        "sessions": len(p),
        "brier": float(((p - y) ** 2).mean()),
        "brier_of_the_base_rate": base * (1.0 - base),
        "mean_risk": float(p.mean()),
        "share": base,
        "expected_calibration_error": sum(b["n"] * abs(b["risk"] - b["share"]) for b in bins)
        / len(p),
        "bins": bins,
    }
