"""Linear probes do not read the rounding of dimensions that are constant otherwise."""

import numpy as np
import pytest

pytest.importorskip("torch")

from models.fit.distress import Worded, fit_probe
from models.fit.standardised import LEAST_SPREAD, centre_and_divisor

CONSTANT = 3


def vectors(rows: int = 600) -> np.ndarray:
    """Normal numbers, but for one dimension that is constant but for half floats' rounding."""
    chance = np.random.default_rng(2)
    found = chance.normal(0, 0.3, (rows, 8))
    found[:, CONSTANT] = 5.5 + 0.004 * (chance.random(rows) < 0.5)
    return found


def test_only_nearly_constant_dimensions_have_another_divisor_than_their_spread() -> None:
    x = vectors()
    centre, divisor = centre_and_divisor(x)
    np.testing.assert_allclose(centre, x.mean(axis=0))
    usual = np.arange(8) != CONSTANT
    np.testing.assert_array_equal(divisor[usual], x.std(axis=0)[usual])
    assert divisor[CONSTANT] == LEAST_SPREAD * np.median(x.std(axis=0))


def test_a_probe_does_not_change_with_the_rounding_of_a_constant_dimension() -> None:
    x = vectors()
    distressed = x[:, 0] + 50 * (x[:, CONSTANT] - 5.502) > 0
    items = [Worded("afraid" if bad else "joyful", "", test=False) for bad in distressed]
    probe = fit_probe(x, items)
    rounded = x.copy()
    rounded[:, CONSTANT] = 5.5
    change = np.abs(probe.probabilities(x) - probe.probabilities(rounded))
    assert change.max() < 0.02
    assert np.mean((probe.probabilities(x) > 0.5) == distressed) > 0.7
