"""What is hidden protects, and hides no more than it must."""

import itertools
from collections import Counter

import pytest

from stream_app.analytics.rollups import cells
from stream_app.analytics.views import hidden_cells
from stream_app.analytics.views.hidden_cells import Equation, Key, Size
from tests.analytics import linked_cells

MONTHS = 14


def test_a_team_and_a_month_are_shown_although_cohorts_and_weeks_are_small() -> None:
    """30 counsellors, two teams, 105 sessions a month."""
    shown: Counter[str] = Counter()
    for seed in range(MONTHS):
        found = linked_cells.month(seed)
        gone = hidden_cells.hidden(linked_cells.sizes(found), cells.equations(found))
        shown.update(cell.kind.name for key, cell in found.items() if key not in gone)
    assert shown[cells.MONTH_ALL] == MONTHS
    assert shown[cells.MONTH_TEAM] >= 0.85 * 2 * MONTHS
    assert shown[cells.WEEK_ALL] > MONTHS


@pytest.mark.parametrize("seed", range(4))
def test_bounds_on_hidden_counts_stay_wide(seed: int) -> None:
    """Counts are not negative and add up: what a reader can work out with linear programmes."""
    found = linked_cells.month(seed, domains=3)
    equations = cells.equations(found)
    sizes = linked_cells.sizes(found)
    gone = hidden_cells.hidden(sizes, equations)
    values = {key: int(cell.row["sessions"]) for key, cell in found.items()}
    small = [key for key, size in sizes.items() if size.too_small]
    assert small
    for key in small:
        least, most = linked_cells.bounds(values, equations, gone, key)
        assert least - 1e-6 <= values[key] <= most + 1e-6
        assert most - least >= 2, key


def test_the_same_cells_are_hidden_whatever_the_order() -> None:
    found = linked_cells.month(3)
    sizes, equations = linked_cells.sizes(found), cells.equations(found)
    gone = hidden_cells.hidden(sizes, equations)
    assert gone == hidden_cells.hidden(dict(reversed(sizes.items())), equations[::-1])


def test_no_total_is_hidden_and_no_more_parts_than_needed() -> None:
    """Tried against every choice of parts in a table of two by three with its totals."""
    counts = {(0, 0): 4, (0, 1): 30, (0, 2): 30, (1, 0): 40, (1, 1): 35, (1, 2): 50}
    equations = []
    every: dict[Key, int] = dict(counts)
    for row in (0, 1):
        parts = tuple((row, column) for column in range(3))
        every[row, "all"] = sum(counts[part] for part in parts)
        equations.append(Equation((row, "all"), parts))
    for column in range(3):
        every["all", column] = counts[0, column] + counts[1, column]
        equations.append(Equation(("all", column), ((0, column), (1, column))))
    sizes = {key: Size(n, n, int("all" in key)) for key, n in every.items()}
    gone = hidden_cells.hidden(sizes, equations)
    assert (0, 0) in gone
    assert len(gone) == 4
    fewest = min(
        len(some)
        for n in range(1, 5)
        for some in itertools.combinations(counts, n)
        if (0, 0) in some and not hidden_cells.follows(equations, some) & {(0, 0)}
    )
    assert len(gone) == fewest
    assert not any("all" in key for key in gone)


def test_small_parts_are_hidden_with_enough_others() -> None:
    """Two parts about four people each: their sum is about too few as well."""
    sizes: dict[Key, Size] = {"a": Size(4, 4, 0), "b": Size(4, 4, 0), "c": Size(40, 9, 0)}
    sizes |= {"d": Size(50, 9, 0), "all": Size(98, 26, 1)}
    gone = hidden_cells.hidden(sizes, [Equation("all", ("a", "b", "c", "d"))])
    assert gone == {"a", "b", "c"}


def test_a_measure_that_few_sessions_have_hides_no_more_than_it_needs() -> None:
    found = linked_cells.month(1)
    sizes, equations = linked_cells.sizes(found), cells.equations(found)
    gone = hidden_cells.hidden(sizes, equations)
    rare = next(
        key for key, cell in found.items() if cell.kind.name == cells.WEEK_ALL and key not in gone
    )
    also = hidden_cells.hidden_further(sizes, equations, gone, {rare})
    assert also >= {*gone, rare}
    assert rare not in hidden_cells.follows(equations, also)
