"""A short run of `make soak`."""

import pytest

from tests import soak


@pytest.mark.slow
def test_memory_and_cache_stay_bounded_and_sessions_are_closed() -> None:
    found = soak.run(turns=12_000, sessions=1_200, cached=200)
    assert found.cached == found.cache_bound == 200
    assert found.still_open == 0
    assert found.growth < 0.25
