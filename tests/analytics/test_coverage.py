"""The table of coverage: drawn by a command over hours of platforms, and checked here.

Its first platform is drawn again, so that a table of other estimators than today's is noticed; what
it says of the others is read.
"""

from dataclasses import dataclass

import pytest
from scipy import stats

from benchmarks import coverage
from benchmarks.coverage import (
    CHECKS,
    DOCUMENT,
    NULL,
    Key,
    Tally,
    one,
    outside,
    recorded,
    rows,
    run,
    shown,
    table,
)
from stream_app.analytics.questions.clustered import Term

BY_CHANCE = 0.001
"""Some fifty rows are looked at: one in twenty tables has a row that chance gives so rarely."""
POOLED = "over-time: pooled trend (naive)"
WITHIN = "over-time: change within counsellors"
BIASED = {check.name for check in CHECKS if check.biased}


@dataclass(frozen=True)
class Row:
    """A row of the table; ``n`` intervals, of which shares ``holds`` and ``finds``."""

    truth: float
    first: str
    n: int
    mean: float = 0.0
    holds: float = 1.0
    finds: float = 0.0


def _row(line: str) -> Row:
    truth, first, refused, mean, holds, finds = (
        cell.strip() for cell in line.strip("|").split("|")[2:]
    )
    without, _, platforms = refused.partition(" of ")
    n = int(platforms) - int(without)
    values = (float(mean), _share(holds), _share(finds)) if n else ()
    return Row(float(truth), first, n, *values)


def _share(cell: str) -> float:
    return float(cell.strip("*").split("%")[0]) / 100


LINES = recorded(DOCUMENT.read_text("utf-8"))
RECORDED = {key: _row(line) for key, line in LINES.items()}


def test_the_document_has_every_check() -> None:
    assert set(RECORDED) == {(check.name, world) for check in CHECKS for world in check.truths}


@pytest.mark.parametrize("world", list(coverage.WORLDS))
def test_the_table_is_about_the_estimators_as_they_are(world: str) -> None:
    for key, term in one((world, 1, "")):
        first = RECORDED[key].first
        if term is None:
            assert first == "none", key
        else:
            value = pytest.approx(float(first), rel=0.02)
            assert float(shown(term)) == value, key


@pytest.mark.parametrize("key", [key for key in RECORDED if RECORDED[key].n])
def test_intervals_hold_the_truth_often_enough(key: Key) -> None:
    row = RECORDED[key]
    missed = row.n - round(row.holds * row.n)
    rarely = float(stats.binom.sf(missed - 1, row.n, coverage.SIGNIFICANT)) < BY_CHANCE
    assert rarely == (key[0] in BIASED)


@pytest.mark.parametrize("key", [key for key, row in RECORDED.items() if row.truth == 0 and row.n])
def test_nothing_is_found_where_nothing_is(key: Key) -> None:
    row = RECORDED[key]
    chance = float(stats.binom.sf(round(row.finds * row.n) - 1, row.n, coverage.SIGNIFICANT))
    assert (chance < BY_CHANCE) == (key[0] in BIASED)


def test_worlds_that_are_not_clean_are_all_there() -> None:
    assert {world for _, world in RECORDED} >= set(NULL)


def test_known_effects_are_found() -> None:
    found = {key: row.finds for key, row in RECORDED.items() if key[1] == "effects"}
    assert all(share >= 0.8 for share in found.values()), found


def test_leaving_looks_like_learning_only_in_the_pooled_trend() -> None:
    pooled, within = RECORDED[POOLED, "leaving"], RECORDED[WITHIN, "leaving"]
    assert pooled.finds > 0.5 > 0.07 >= within.finds
    assert pooled.mean > 3 * abs(within.mean)


def test_a_tally_counts_what_is_held_and_what_is_found() -> None:
    tally = Tally()
    tally.add(Term(0.5, 0.4, 0.6, 0.001), 0.45)
    tally.add(Term(0.5, 0.4, 0.6, 0.2), 0.7)
    tally.add(None, 0.0)
    assert (tally.n, tally.held, tally.found, tally.refused) == (2, 1, 1, 1)
    assert tally.first == "0.5"


def test_the_table_has_every_check_and_says_which_are_outside() -> None:
    found = {(check.name, world): Tally() for check in CHECKS for world in check.truths}
    for tally in found.values():
        for _ in range(100):
            tally.add(Term(0, -1, 1, 0.5), 0.5)
    lines = table(rows(found)).splitlines()
    assert len(lines) == 2 + len(found)
    assert sum("**biased**" in line for line in lines) == 1
    assert len(list(outside(found))) == len(found) - 2  # too wide, where 0 is no bound


def test_a_part_is_drawn_by_world_and_by_name() -> None:
    found = run(1, worlds=["nothing", "season"], estimators="follows by interp")
    assert set(found) == {("associations: follows by interpretations (log odds)", "nothing")}
    lines = LINES | rows(found)
    assert set(lines) == set(LINES)
    assert "| 0 of 1 |" in lines[next(iter(found))]
