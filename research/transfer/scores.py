"""A task's score, and the bootstrap test of a difference (section 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
RESAMPLES = 500


def macro_f1(gold: Values, given: Values, classes: int) -> float:
    """Unweighted mean F1 over the labels that occur in either, fast enough for resampling.

    >>> macro_f1(np.array([0, 1, 1]), np.array([0, 1, 0]), 3)
    0.6666666666666666
    """
    both = np.bincount(gold[gold == given], minlength=classes)
    sizes = np.bincount(gold, minlength=classes) + np.bincount(given, minlength=classes)
    found = sizes > 0
    return float((2 * both[found] / sizes[found]).mean())


def pearson(gold: Values, given: Values) -> float:
    """Pearson's correlation; 0 when a side is constant.

    >>> round(pearson(np.array([1.0, 2.0, 4.0]), np.array([2.0, 4.0, 8.0])), 12)
    1.0
    """
    if np.ptp(gold) == 0 or np.ptp(given) == 0:
        return 0.0
    return float(np.corrcoef(gold, given)[0, 1])


def score(gold: Values, given: Values, classes: int) -> float:
    """Macro-F1 of a classification, Pearson's correlation of a rating."""
    return macro_f1(gold, given, classes) if classes else pearson(gold, given)


def p_value(gold: Values, first: Values, second: Values, classes: int) -> float:
    """Two-sided p of "the second scores as the first", by resampling the test items, 0-1.

    Twice the share of resamples whose difference has the other sign, ties counted in full.
    """
    chance = np.random.default_rng(17)
    differences = np.empty(RESAMPLES)
    for number in range(RESAMPLES):
        rows = chance.integers(len(gold), size=len(gold))
        differences[number] = score(gold[rows], second[rows], classes) - score(
            gold[rows], first[rows], classes
        )
    tail = min((differences <= 0).mean(), (differences >= 0).mean())
    return float(min(1.0, 2 * tail))
