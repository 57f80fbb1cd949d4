"""Standardise vectors of turns for a linear probe."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEAST_SPREAD = 0.1
"""Smallest divisor, as a share of the dimensions' median standard deviation.

Some dimensions of the encoders are constant but for rounding. Divided by their own spread, the
rounding would count as much as everything else in the vector.
"""

Floats = NDArray[np.float64]


def centre_and_divisor(vectors: Floats) -> tuple[Floats, Floats]:
    """Mean and divisor of each dimension of vectors [rows, size]."""
    spread = vectors.std(axis=0)
    return vectors.mean(axis=0), np.maximum(spread, LEAST_SPREAD * float(np.median(spread)))
