"""Refits a head's thresholds: the offsets of its levels, and when it abstains.

Below ``MIN_RATINGS`` ratings the bundle's own thresholds stay.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from stream_app.inference.bundles.recalibration import EPSILON

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MIN_RATINGS: Final = 100
GRID: Final = np.arange(-1.5, 1.51, 0.25)
RIGHT_SHARE: Final = 0.90
LARGEST_ABSTENTION: Final = 0.30
"""The limit to which the shipped bundles were calibrated (``models.fit.calibrate``)."""


def fit_offsets(
    probabilities: Floats, gold: Ints, shipped: tuple[float, ...], *, ordered: bool
) -> tuple[float, ...]:
    """Offsets of three ordered labels, the first 0, with the highest smoothed quadratic kappa.

    The grid is smoothed over its neighbours, so that a single lucky cell is not chosen. Other heads
    keep the most probable label.

    Args:
        probabilities: [n, labels], recalibrated.
        gold: [n], the raters' labels.
        shipped: offsets of the bundle, used below ``MIN_RATINGS`` ratings.
        ordered: whether the labels are levels.
    """
    if not ordered or len(gold) < MIN_RATINGS or probabilities.shape[1] != 3:
        return shipped
    logs = np.log(probabilities + EPSILON)
    surface = np.array(
        [[_kappa(_labels(logs, (0.0, one, two)), gold) for two in GRID] for one in GRID]
    )
    padded = np.pad(surface, 1, mode="edge")
    size = len(GRID)
    smooth = sum(
        padded[row : row + size, column : column + size] for row in range(3) for column in range(3)
    )
    row, column = np.unravel_index(int(np.argmax(smooth)), surface.shape)
    return 0.0, float(GRID[row]), float(GRID[column])


def fit_abstention(confidence: Floats, right: npt.NDArray[np.bool_]) -> float | None:
    """Lowest confidence from which nine tenths of the answers are right, in [0, 1].

    At most three tenths of the turns abstain. None below ``MIN_RATINGS`` ratings: keep the bundle's
    own.
    """
    n = len(right)
    if n < MIN_RATINGS:
        return None
    order = np.argsort(-confidence, kind="stable")
    share = np.cumsum(right[order]) / np.arange(1, n + 1)
    least = int(np.ceil((1 - LARGEST_ABSTENTION) * n))
    answered = next((k for k in range(n, least - 1, -1) if share[k - 1] >= RIGHT_SHARE), least)
    if answered == n:
        return 0.0
    return float(np.floor(confidence[order[answered - 1]] * 1e4) / 1e4)


def _labels(logs: Floats, offsets: tuple[float, ...]) -> Ints:
    return np.asarray((logs + np.array(offsets)).argmax(axis=-1))


def _kappa(given: Ints, gold: Ints) -> float:
    """Quadratic kappa of two vectors of levels."""
    far = float(((given - gold) ** 2).mean())
    one, two = (
        np.bincount(given, minlength=3) / len(gold),
        np.bincount(gold, minlength=3) / len(gold),
    )
    steps = np.arange(3)
    chance = float(one @ (np.subtract.outer(steps, steps) ** 2.0) @ two)
    return 1.0 - far / chance if chance > 0 else 0.0
