"""Chance-corrected agreement: Cohen's kappa (statsmodels) and Krippendorff's alpha.

Kappa compares two coders (Cohen 1960); weighted kappa (Cohen 1968) counts a disagreement by the
number of steps between the two values (linear) or its square (quadratic). Alpha compares any number
of coders with missing values (Krippendorff 2019, chapter 12). Each is NaN where it is not defined,
because all values are the same.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from statsmodels.stats.inter_rater import cohens_kappa

from models.agreement.ratings import MISSING, Ints

Weights = Literal["linear", "quadratic"] | None


def confusion(one: Ints, other: Ints, labels: int) -> Ints:
    """Counts [labels, labels] of pairs of values; items that either coder left out do not count.

    >>> confusion(np.array([0, 0, 1, -1]), np.array([0, 1, 1, 1]), 2).tolist()
    [[1, 1], [0, 1]]
    """
    both = (one != MISSING) & (other != MISSING)
    cells = one[both] * labels + other[both]
    return np.bincount(cells, minlength=labels * labels).reshape(labels, labels)


def equal_share(counts: Ints) -> float:
    """Share of items with equal values, in [0, 1]; NaN without items."""
    n = int(counts.sum())
    return float(np.trace(counts)) / n if n else float("nan")


def kappa(counts: Ints, weights: Weights = None) -> float:
    """Cohen's kappa of a confusion matrix, at most 1; NaN if both used one and the same value.

    >>> kappa(np.array([[15, 5], [5, 15]]))
    0.5
    """
    used = counts.any(1) | counts.any(0)
    if used.sum() < 2:
        return float("nan")
    return float(cohens_kappa(counts, wt=weights, return_results=False))


def alpha(values: Ints, labels: int, *, ordered: bool) -> float:
    """Krippendorff's alpha of `values` [items, coders], at most 1; ordinal or nominal distances.

    NaN if the items that at least two coders coded all have the same value.

    >>> alpha(np.array([[0, 0], [1, 1], [0, 1], [1, -1]]), 2, ordered=False)
    0.4444444444444444
    """
    per_item = np.stack([(values == label).sum(1) for label in range(labels)], 1)
    per_item = per_item[per_item.sum(1) > 1]
    if (per_item.any(0)).sum() < 2:
        return float("nan")
    pairable = per_item.sum(1)
    observed = (per_item / (pairable - 1)[:, None]).T @ per_item
    observed -= np.diag((per_item / (pairable - 1)[:, None]).sum(0))
    totals: NDArray[np.float64] = observed.sum(1)
    distances = _ordinal(totals) if ordered else 1.0 - np.eye(labels)
    expected = float((np.outer(totals, totals) * distances).sum())
    return 1.0 - (float(totals.sum()) - 1.0) * float((observed * distances).sum()) / expected


def _ordinal(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared distances of values: the ranks that lie between them, by how often each is used."""
    ranks = np.cumsum(totals) - totals / 2
    return (ranks[:, None] - ranks) ** 2
