"""Cells about few people are hidden, and no hidden value follows from what is shown."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.web.suppression import Place, Size, hidden

ENOUGH = Size(40, 10)
FEW = Size(3, 2)


@st.composite
def tables(draw: st.DrawFn) -> dict[Place, Size]:
    """Tables with their totals; people are in one cell only."""
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    size = st.builds(Size, st.integers(0, 30), st.integers(0, 12))
    inner = {(r, c): draw(size) for r in range(rows) for c in range(columns)}
    return with_totals(inner, rows, columns)


def with_totals(inner: dict[Place, Size], rows: int, columns: int) -> dict[Place, Size]:
    def total(places: list[Place]) -> Size:
        sizes = [inner[place] for place in places]
        return Size(sum(s.clients for s in sizes), sum(s.counsellors for s in sizes))

    table = dict(inner)
    for r in range(rows):
        table[r, columns] = total([(r, c) for c in range(columns)])
    for c in range(columns):
        table[rows, c] = total([(r, c) for r in range(rows)])
    table[rows, columns] = total(list(inner))
    return table


def derivable(table: dict[Place, Size], chosen: set[Place]) -> set[Place]:
    """Hidden cells whose value the equations of the lines fix, by linear algebra.

    A cell is fixed if its unit vector lies in the space that the equations span, restricted to the
    hidden cells: the shown ones are constants.
    """
    unknowns = sorted(chosen)
    rows = max(r for r, _ in table)
    columns = max(c for _, c in table)
    lines = [([(r, c) for c in range(columns)], (r, columns)) for r in range(rows + 1)]
    lines += [([(r, c) for r in range(rows)], (rows, c)) for c in range(columns + 1)]
    equations = np.array(
        [[(p in parts) - (p == total) for p in unknowns] for parts, total in lines], dtype=float
    )
    rank = np.linalg.matrix_rank(equations) if unknowns else 0
    found = set()
    for i, place in enumerate(unknowns):
        unit = np.eye(len(unknowns))[i]
        if np.linalg.matrix_rank(np.vstack([equations, unit])) == rank:
            found.add(place)
    return found


@given(tables())
def test_no_hidden_value_follows_from_the_shown_ones(table: dict[Place, Size]) -> None:
    assert derivable(table, hidden(table)) == set()


@given(tables())
def test_every_small_cell_is_hidden(table: dict[Place, Size]) -> None:
    assert {place for place, size in table.items() if size.too_small} <= hidden(table)


@given(tables())
def test_a_table_without_small_cells_is_shown_whole(table: dict[Place, Size]) -> None:
    if not any(size.too_small for size in table.values()):
        assert hidden(table) == set()


@pytest.mark.parametrize(
    ("clients", "counsellors", "small"),
    [(10, 5, True), (11, 4, True), (11, 5, False), (0, 0, False), (0, 5, True)],
)
def test_eleven_clients_and_five_counsellors_are_enough(
    clients: int, counsellors: int, small: bool
) -> None:
    assert Size(clients, counsellors).too_small is small


def test_one_small_cell_takes_three_others_with_it() -> None:
    """A lone gap in a row and a column with totals would be a subtraction away."""
    inner = {(r, c): ENOUGH for r in range(3) for c in range(3)} | {(0, 0): FEW}
    table = with_totals(inner, 3, 3)
    chosen = hidden(table)
    assert len(chosen) == 4
    assert all(r < 3 and c < 3 for r, c in chosen), "totals are about more people, and stay"


def test_two_circles_joined_by_one_cell_give_that_cell_away() -> None:
    """Every line here has two gaps or none, and still (1, 2) could be worked out.

    x x . . .        The circles (0,0)-(0,1)-(1,1)-(1,0) and (2,2)-(2,3)-(3,3)-(3,2) are joined
    x x x . .        by (1, 2) alone: row 0 and 1 minus column 0 and 1 leave its value.
    . . x x .
    . . x x .
    """
    small = {(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 2), (2, 3), (3, 2), (3, 3)}
    inner = {(r, c): FEW if (r, c) in small else ENOUGH for r in range(4) for c in range(4)}
    table = with_totals(inner, 4, 4)
    assert derivable(table, small) == {(1, 2)}
    assert small < hidden(table)


def test_a_table_with_holes_is_refused() -> None:
    with pytest.raises(ValueError, match="all its cells"):
        hidden({(0, 0): ENOUGH, (1, 1): ENOUGH})
