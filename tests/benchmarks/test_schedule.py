from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.load import schedule


@given(rate=st.floats(50.0, 500.0), seed=st.integers(0, 1000))
def test_arrivals_are_ordered_and_have_about_the_rate(rate: float, seed: int) -> None:
    at = schedule.arrivals(rate, 20.0, seed)
    assert at == sorted(at)
    assert at[0] > 0.0
    assert at[-1] < 20.0
    wanted = rate * 20.0
    assert abs(len(at) - wanted) < 6 * wanted**0.5


def test_gaps_are_as_irregular_as_those_of_a_poisson_process() -> None:
    at = schedule.arrivals(100.0, 100.0, seed=3)
    gaps = [b - a for a, b in pairwise(at)]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / len(gaps)
    assert variance**0.5 / mean == pytest.approx(1.0, abs=0.1)


def test_equal_seeds_give_equal_times() -> None:
    assert schedule.arrivals(10.0, 5.0, 1) == schedule.arrivals(10.0, 5.0, 1)
    assert schedule.arrivals(10.0, 5.0, 1) != schedule.arrivals(10.0, 5.0, 2)


@pytest.mark.parametrize(
    "make", [lambda: schedule.even(0.0, 1.0), lambda: schedule.arrivals(-1.0, 1.0, 1)]
)
def test_a_rate_must_be_positive(make) -> None:
    with pytest.raises(ValueError, match="above 0"):
        make()


def test_time_that_a_turn_waited_for_a_late_sender_counts() -> None:
    """The sender slept from 0 to 1 s: turns scheduled for 0.1 … 0.9 s were committed after 1 s."""
    intended = [place / 10 for place in range(10)]
    found = schedule.latency(intended, [1.01] * 10)
    assert found.worst == pytest.approx(1010.0)
    assert found.p50 == pytest.approx(560.0)
    assert found.turns == 10


def test_the_backlog_is_the_number_of_due_and_unfinished_turns() -> None:
    due = [float(second) for second in range(11)]
    keeping_up = [at + 0.5 for at in due]
    assert schedule.backlog(due, keeping_up) == [1] * 10
    falling_behind = [2 * at + 0.5 for at in due]
    assert schedule.backlog(due, falling_behind) == [1, 2, 2, 3, 3, 4, 4, 5, 5, 6]
