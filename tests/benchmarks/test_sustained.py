"""The criterion of a sustainable rate, and the search for the highest one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.load.consumer_group import Flow
from benchmarks.load.schedule import Latency
from benchmarks.load.sustained import LOWEST, STEPS, keeps_up, search

SECONDS = 10.0
NOTHING = Latency(0.0, 0.0, 0.0, 0.0, 1)


def flow(rate: float, backlog: list[int]) -> Flow:
    return Flow(rate, NOTHING, 0.0, backlog)


@given(level=st.integers(0, 5000), rate=st.floats(10.0, 2000.0))
def test_a_constant_backlog_is_sustainable(level: int, rate: float) -> None:
    assert keeps_up(flow(rate, [level] * 10), SECONDS)


@given(rate=st.floats(100.0, 2000.0), deficit=st.floats(0.05, 0.9))
def test_a_backlog_that_grows_with_the_input_is_not_sustainable(
    rate: float, deficit: float
) -> None:
    """After a second of start-up, a share of the turns remains in the backlog."""
    grows = [int(rate * deficit * second + 1) for second in range(1, 11)]
    assert not keeps_up(flow(rate, grows), SECONDS)


def test_fluctuations_by_batches_do_not_count_as_growth() -> None:
    assert keeps_up(flow(500.0, [0, 120, 30, 90, 10, 110, 60, 20, 130, 70]), SECONDS)


@given(limit=st.floats(0.0, 1200.0))
def test_the_search_ends_below_the_limit_and_near_it(limit: float) -> None:
    tried: list[float] = []

    def holds(rate: float) -> bool:
        tried.append(rate)
        return rate <= limit

    found = search(holds, 1000.0)
    assert len(tried) == STEPS
    if limit >= 1000.0 * LOWEST:
        assert found <= limit
        assert min(limit, 1000.0) - found == pytest.approx(0, abs=1000.0 * LOWEST / 2**STEPS)
    else:
        assert found == 1000.0 * LOWEST
