"""Intervals of cells: sessions of one counsellor are alike, so they are no independent evidence."""

import numpy as np
import pytest
from scipy import stats

from stream_app.analytics.rollups import cells
from stream_app.analytics.views.shown import Z

CELL = next(kind for kind in cells.KINDS if kind.name == cells.MONTH_ALL)


def interval(values: np.ndarray, people: np.ndarray) -> tuple[float, float]:
    """As the views compute it from a cell's sums."""
    n, total = len(values), int(values.sum())
    counts = np.bincount(people)
    sums = np.bincount(people, weights=values)
    found = {
        "n_x": n,
        "total_x": total,
        "squares_x": int((values**2).sum()),
        "people_x": len(counts),
        "apart_x": int((counts**2).sum()),
        "both_x": int((counts * sums).sum()),
        "alike_x": int((sums**2).sum()),
    }
    squares = cells._squares(found, "x", CELL)
    half = Z * np.sqrt((squares - total * total / n) / (n - 1) / n)
    return total / n - half, total / n + half


def drawn(draw: np.random.Generator, counsellors: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """About ten sessions each; a third of the variance lies between counsellors."""
    people = np.repeat(np.arange(counsellors), 1 + draw.poisson(9, counsellors))
    own = draw.normal(0, 0.06, counsellors)[people]
    values = 0.5 + own + draw.normal(0, 0.09, len(people))
    return (values * 10_000).round().astype(int), people


def test_the_interval_is_students_of_the_counsellors_sums() -> None:
    values, people = drawn(np.random.default_rng(1))
    low, high = interval(values, people)
    mean = values.mean()
    apart = np.bincount(people, weights=values - mean)
    error = np.sqrt((apart**2).sum() * 8 / 7) / len(values)
    assert low == pytest.approx(mean - stats.t.ppf(0.975, 7) * error, rel=1e-3)
    assert high == pytest.approx(mean + stats.t.ppf(0.975, 7) * error, rel=1e-3)


def test_intervals_of_eight_counsellors_hold_the_truth() -> None:
    """Taking sessions for independent, about half of them would."""
    draw = np.random.default_rng(2)
    held = 0
    for _ in range(400):
        low, high = interval(*drawn(draw))
        held += low <= 5000 <= high
    assert 0.91 <= held / 400 <= 0.98


@pytest.mark.parametrize("freedom", [4, 7, 20, 200])
def test_the_quantile_is_students(freedom: int) -> None:
    ratio = stats.t.ppf(0.975, freedom) / stats.norm.ppf(0.975)
    assert cells._wider(freedom) ** 0.5 == pytest.approx(ratio, rel=3e-3)
