"""The session cache is bounded and evicts the least recently used states."""

import pytest

from stream_app.core.session.session_state import SessionState, Versioned
from stream_app.worker.batches.session_cache import SessionCache


def states(names: str) -> dict[str, Versioned]:
    return {name: Versioned(SessionState(name, "bundle")) for name in names}


def cached_names(cache: SessionCache, names: str) -> str:
    return "".join(name for name in names if cache.get(name) is not None)


@pytest.mark.parametrize(
    ("used", "left"),
    [("", "cde"), ("a", "ade"), ("ba", "abe"), ("abc", "bce"), ("cba", "abe")],
)
def test_the_least_recently_used_states_are_evicted(used: str, left: str) -> None:
    cache = SessionCache(3)
    cache.put(states("abc"))
    for name in used:
        cache.get(name)
    cache.put(states("de") if used in ("", "a") else states("e"))
    assert cached_names(cache, "abcde") == left


def test_putting_a_state_counts_as_use() -> None:
    cache = SessionCache(2)
    cache.put(states("ab"))
    cache.put(states("a"))
    cache.put(states("c"))
    assert cached_names(cache, "abc") == "ac"


def test_the_cache_never_exceeds_its_limit() -> None:
    cache = SessionCache(2)
    cache.put(states("abcdef"))
    assert len(cache) == 2
    assert cached_names(cache, "abcdef") == "ef"


def test_invalidation_takes_effect_once_before_the_next_batch() -> None:
    cache = SessionCache(9)
    cache.put(states("ab"))
    cache.invalidate()
    assert len(cache) == 2
    cache.clear_if_invalid()
    assert len(cache) == 0
    cache.put(states("a"))
    cache.clear_if_invalid()
    assert len(cache) == 1
