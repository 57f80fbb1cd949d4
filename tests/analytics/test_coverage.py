"""Every estimator on a few platforms with known effects; the table in the docs has more of each."""

import pytest

from stream_app.analytics.questions.clustered import Term
from stream_app.analytics.simulation import coverage
from stream_app.analytics.simulation.coverage import CHECKS, Tally, one, outside, run, table


@pytest.mark.parametrize("world", list(coverage.WORLDS))
def test_estimates_lie_near_the_truth(world: str) -> None:
    """Within twice the half width of the interval, on a platform drawn with a fixed seed."""
    found = {name: term for (name, _), term in one((world, 11))}
    for check in CHECKS:
        if world in check.truths and not check.biased:
            term = found[check.name]
            if term is None:
                assert world in coverage.UNCLEAN
                continue
            reach = 2 * max(term.high - term.value, term.value - term.low)
            assert abs(term.value - check.truths[world]) <= reach, check.name


def test_known_effects_are_found() -> None:
    found = {name: term for (name, _), term in one(("effects", 11))}
    clear = [term for term in found.values() if term and term.p < coverage.SIGNIFICANT]
    assert len(clear) >= len(found) - 1


def test_leaving_looks_like_learning_only_in_the_pooled_trend() -> None:
    drawn = [dict(one(("leaving", seed))) for seed in (1, 2, 3, 4)]
    pooled = [each["over-time: pooled trend (naive)", "leaving"] for each in drawn]
    within = [each["over-time: change within counsellors", "leaving"] for each in drawn]
    assert sum(term.low > 0 for term in pooled if term) >= 2
    assert all(abs(term.value) < 0.0012 for term in within if term)
    mean = sum(term.value for term in pooled if term) / len(pooled)
    assert mean > 3 * abs(sum(term.value for term in within if term) / len(within))


def test_a_tally_counts_what_is_held_and_what_is_found() -> None:
    tally = Tally()
    tally.add(Term(0.5, 0.4, 0.6, 0.001), 0.45)
    tally.add(Term(0.5, 0.4, 0.6, 0.2), 0.7)
    tally.add(None, 0.0)
    assert (tally.n, tally.held, tally.found, tally.refused) == (2, 1, 1, 1)


def test_the_table_has_every_check_and_says_which_are_outside() -> None:
    found = {(check.name, world): Tally() for check in CHECKS for world in check.truths}
    for tally in found.values():
        for _ in range(100):
            tally.add(Term(0, -1, 1, 0.5), 0.5)
    lines = table(found).splitlines()
    assert len(lines) == 2 + len(found)
    assert sum("**biased**" in line for line in lines) == 1
    assert len(list(outside(found))) == len(found) - 2  # too wide, where 0 is no bound


@pytest.mark.slow
def test_intervals_hold_the_truth_often_enough() -> None:
    """Of 24 platforms chance allows 4 outside (Binomial(24, 0.95) has less than 1 % above)."""
    for key, tally in run(24, processes=2).items():
        [check] = [check for check in CHECKS if check.name == key[0]]
        assert check.biased == (tally.n - tally.held > 4), key


@pytest.mark.slow
def test_nothing_is_found_where_the_world_is_not_clean() -> None:
    """Of 20 platforms chance allows 4 (Binomial(20, 0.05) has less than 1 % above)."""
    for key, tally in run(20, processes=2, worlds=coverage.UNCLEAN).items():
        assert tally.found <= 4, key
