"""Intervals by resampling sessions: turns of one session are not independent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]
RESAMPLES = 1000


def auroc(y: NDArray[np.bool_], score: Floats) -> float:
    """Area under the ROC curve by the rank-sum statistic; NaN with one class alone.

    >>> auroc(np.array([True, False]), np.array([0.9, 0.1]))
    1.0
    """
    positive, total = int(y.sum()), len(y)
    if positive in (0, total):
        return float("nan")
    ranks = float(rankdata(score)[y].sum())
    return (ranks - positive * (positive + 1) / 2) / (positive * (total - positive))


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's rank correlation; NaN when a side is constant.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 9.0]))
    1.0
    """
    a, b = rankdata(x), rankdata(y)
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return round(float(a @ b) / norm, 12) if norm else float("nan")


def interval(
    groups: NDArray[np.int64],
    statistic: Callable[[NDArray[np.int64]], float],
    resamples: int = RESAMPLES,
    seed: int = 17,
) -> dict[str, Any]:
    """The statistic on all rows and its 95 % percentile interval, whole groups being resampled.

    `groups` [rows] names each row's session; `statistic` takes row numbers.
    """
    chance = np.random.default_rng(seed)
    order = np.argsort(groups, kind="stable")
    _, first = np.unique(groups[order], return_index=True)
    members = np.split(order, first[1:])
    drawn = []
    for _ in range(resamples):
        chosen = chance.integers(len(members), size=len(members))
        value = statistic(np.concatenate([members[i] for i in chosen]))
        if not np.isnan(value):
            drawn.append(value)
    value = statistic(np.arange(len(groups)))
    low, high = np.quantile(drawn, [0.025, 0.975]) if drawn else (float("nan"),) * 2
    return {"value": value, "low": float(low), "high": float(high), "resamples": len(drawn)}


def spread(values: list[float]) -> dict[str, Any]:
    """Mean and standard deviation over the folds, and the folds themselves."""
    known = [value for value in values if not np.isnan(value)]
    return {
        "mean": float(np.mean(known)) if known else None,
        "sd": float(np.std(known, ddof=1)) if len(known) > 1 else None,
        "folds": values,
    }
