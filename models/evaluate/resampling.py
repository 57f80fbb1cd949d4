"""Intervals by resampling sessions, because turns of one session are not independent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, spearmanr

Floats = NDArray[np.floating[Any]]
RESAMPLES = 1000


def auroc(y: NDArray[np.bool_], score: Floats) -> float:
    """Area under the ROC curve; NaN with one class alone.

    From ranks (Mann and Whitney), because scikit-learn's checks of its arguments take most of the
    time of a thousand resamples.

    >>> auroc(np.array([True, False]), np.array([0.9, 0.1]))
    1.0
    >>> auroc(np.array([True, False, False]), np.array([0.5, 0.5, 0.1]))
    0.75
    """
    y = np.asarray(y, bool)
    positive, negative = int(y.sum()), int((~y).sum())
    if not positive or not negative:
        return float("nan")
    above = rankdata(score)[y].sum() - positive * (positive + 1) / 2
    return float(above / (positive * negative))


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's rank correlation; NaN when a side is constant.

    >>> round(spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 9.0])), 12)
    1.0
    """
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(spearmanr(x, y).statistic)


def partial_spearman(x: Floats, y: Floats, given: Floats) -> float:
    """Rank correlation of `x` and `y`, both [n], with the columns of `given` [n, k] held constant.

    The ranks of both are regressed on `given` (ranks of a quantity, or dummy variables for each
    group but the first), and the residuals are correlated. NaN when a residual is constant.

    >>> x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 1.0, 4.0, 3.0])
    >>> round(partial_spearman(x, y, np.array([[0.0], [0.0], [1.0], [1.0]])), 12)
    -1.0
    """
    design = np.column_stack([np.ones(len(x)), given])
    left = np.column_stack([rankdata(x), rankdata(y)])
    left -= design @ np.linalg.lstsq(design, left, rcond=None)[0]
    size = np.sqrt((left**2).sum(axis=0))
    if (size < 1e-9 * len(x)).any():
        return float("nan")
    return float(left[:, 0] @ left[:, 1] / (size[0] * size[1]))


def interval(
    groups: NDArray[np.int64],
    statistic: Callable[[NDArray[np.int64]], float],
    resamples: int | None = None,
    seed: int = 17,
) -> dict[str, Any]:
    """The statistic on all rows and its 95 % percentile interval from resampled groups.

    `groups` [rows] is each row's session; `statistic` takes row numbers; without a number of
    resamples there are `RESAMPLES`.
    """
    chance = np.random.default_rng(seed)
    order = np.argsort(groups, kind="stable")
    _, first = np.unique(groups[order], return_index=True)
    members = np.split(order, first[1:])
    drawn = []
    for _ in range(RESAMPLES if resamples is None else resamples):
        chosen = chance.integers(len(members), size=len(members))
        value = statistic(np.concatenate([members[i] for i in chosen]))
        if not np.isnan(value):
            drawn.append(value)
    value = statistic(np.arange(len(groups)))
    low, high = np.quantile(drawn, [0.025, 0.975]) if drawn else (float("nan"),) * 2
    return {"value": value, "low": float(low), "high": float(high), "resamples": len(drawn)}


def spread(values: list[float]) -> dict[str, Any]:
    """Mean and standard deviation over the folds, and the values per fold."""
    known = [value for value in values if not np.isnan(value)]
    return {
        "mean": float(np.mean(known)) if known else None,
        "sd": float(np.std(known, ddof=1)) if len(known) > 1 else None,
        "folds": values,
    }
