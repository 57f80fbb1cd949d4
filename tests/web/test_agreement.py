"""Cohen's kappa: values, intervals, and cases without a kappa."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa as library_kappa

from stream_app.findings.agreement import ConfusionMatrix, Kappa, confusion_matrix, kappa
from stream_app.findings.cohens_kappa import cohens_kappa

WIDE: ConfusionMatrix = ((20, 5, 1), (4, 10, 6), (2, 3, 9))


def expected_kappa(counts: ConfusionMatrix, *, ordered: bool) -> float:
    """1 minus observed over expected disagreement, weights (i - j)² or 1."""
    n = sum(map(sum, counts))
    rows = [sum(row) for row in counts]
    columns = [sum(column) for column in zip(*counts, strict=True)]
    observed = expected = 0.0
    for i, row in enumerate(counts):
        for j, count in enumerate(row):
            weight = (i - j) ** 2 if ordered else float(i != j)
            observed += weight * count / n
            expected += weight * rows[i] * columns[j] / n**2
    return 1 - observed / expected


def test_kappa_of_a_small_table() -> None:
    """n 40, levels 0 and 1: observed agreement 0.75, by chance 0.5, so kappa 0.5."""
    assert kappa(((15, 5, 0), (5, 15, 0), (0, 0, 0))).kappa == pytest.approx(0.5)


@pytest.mark.parametrize("ordered", [True, False])
def test_kappa_matches_its_formula(ordered: bool) -> None:
    found = kappa(WIDE, ordered=ordered)
    assert found.kappa == pytest.approx(expected_kappa(WIDE, ordered=ordered))
    assert found.n == 60


@given(
    st.integers(2, 5).flatmap(
        lambda labels: st.lists(
            st.lists(st.integers(1, 30), min_size=labels, max_size=labels),
            min_size=labels,
            max_size=labels,
        )
    ),
    st.booleans(),
)
def test_kappa_and_its_error_are_those_of_statsmodels(
    counts: list[list[int]], ordered: bool
) -> None:
    found = library_kappa(np.array(counts), wt="quadratic" if ordered else None)
    expected = (found.kappa, found.std_kappa)
    assert cohens_kappa(counts, ordered=ordered) == pytest.approx(expected, abs=1e-9)


def test_a_difference_of_two_levels_weighs_four_times_as_much() -> None:
    near, far = (
        kappa(((10, 5, 0), (0, 10, 0), (0, 0, 10))),
        kappa(((10, 0, 5), (0, 10, 0), (0, 0, 10))),
    )
    assert near.kappa is not None
    assert far.kappa is not None
    assert near.kappa > far.kappa


def test_the_interval_is_close_to_a_bootstrap() -> None:
    """Synthetic pairs: on a quarter of 150 turns the raters differ by one level."""
    drawing = np.random.default_rng(3)
    one = drawing.integers(0, 3, 150)
    other = np.clip(one + drawing.choice([-1, 0, 1], 150, p=[0.12, 0.76, 0.12]), 0, 2)
    found = kappa(confusion_matrix(zip(one.tolist(), other.tolist(), strict=True), 3))
    resampled = []
    for _ in range(2000):
        chosen = drawing.integers(0, 150, 150)
        pairs = zip(one[chosen].tolist(), other[chosen].tolist(), strict=True)
        resampled.append(expected_kappa(confusion_matrix(pairs, 3), ordered=True))
    low, high = np.quantile(resampled, [0.025, 0.975])
    assert found.low == pytest.approx(low, abs=0.02)
    assert found.high == pytest.approx(high, abs=0.02)


def test_fewer_than_twenty_pairs_give_no_kappa() -> None:
    assert kappa(((19, 0, 0), (0, 0, 0), (0, 0, 0))).words == "not enough ratings yet: 19"
    assert kappa(confusion_matrix([], 3)).words == "not enough ratings yet: 0"


@pytest.mark.parametrize(
    "counts",
    [
        ((40, 0, 0), (0, 0, 0), (0, 0, 0)),
        ((20, 20, 0), (0, 0, 0), (0, 0, 0)),
        ((20,) * 1 + (0, 0), (20, 0, 0), (0, 0, 0)),
    ],
)
def test_a_side_with_a_single_level_gives_no_kappa(counts: ConfusionMatrix) -> None:
    assert "only one level" in kappa(counts).words
    assert kappa(counts).kappa is None


def test_perfect_agreement_has_no_interval() -> None:
    found = kappa(((10, 0, 0), (0, 10, 0), (0, 0, 0)))
    assert (found.kappa, found.low) == (1.0, None)
    assert "no interval" in found.words


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=80))
def test_any_table_has_a_kappa_in_its_interval_or_a_reason(pairs: list[tuple[int, int]]) -> None:
    found: Kappa = kappa(confusion_matrix(pairs, 3))
    assert found.n == len(pairs)
    if found.kappa is None:
        assert found.problem
    elif found.low is not None and found.high is not None:
        assert -1 <= found.low <= found.kappa <= found.high <= 1
    assert found.words
