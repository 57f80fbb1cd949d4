"""Cells about few people are suppressed, and no suppressed value can be derived."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.analytics.questions.suppression import CellIndex, CellSize, suppressed_cells

ENOUGH = CellSize(40, 10)
FEW = CellSize(3, 2)


@st.composite
def tables(draw: st.DrawFn) -> dict[CellIndex, CellSize]:
    """Tables with totals; each person is in one cell."""
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    size = st.builds(CellSize, st.integers(0, 30), st.integers(0, 12))
    inner = {(r, c): draw(size) for r in range(rows) for c in range(columns)}
    return with_totals(inner, rows, columns)


def with_totals(
    inner: dict[CellIndex, CellSize], rows: int, columns: int
) -> dict[CellIndex, CellSize]:
    def total(places: list[CellIndex]) -> CellSize:
        sizes = [inner[place] for place in places]
        return CellSize(sum(s.clients for s in sizes), sum(s.counsellors for s in sizes))

    table = dict(inner)
    for r in range(rows):
        table[r, columns] = total([(r, c) for c in range(columns)])
    for c in range(columns):
        table[rows, c] = total([(r, c) for r in range(rows)])
    table[rows, columns] = total(list(inner))
    return table


def derivable(table: dict[CellIndex, CellSize], chosen: set[CellIndex]) -> set[CellIndex]:
    """Suppressed cells whose value follows from the row and column equations, by linear algebra.

    A value follows if the cell's unit vector is in the row space of the equations, restricted to
    suppressed cells (the shown ones are constants).
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
def test_no_suppressed_value_can_be_derived(table: dict[CellIndex, CellSize]) -> None:
    assert derivable(table, suppressed_cells(table)) == set()


@given(tables())
def test_every_small_cell_is_suppressed(table: dict[CellIndex, CellSize]) -> None:
    assert {place for place, size in table.items() if size.too_small} <= suppressed_cells(table)


@given(tables())
def test_a_table_without_small_cells_is_shown_completely(table: dict[CellIndex, CellSize]) -> None:
    if not any(size.too_small for size in table.values()):
        assert suppressed_cells(table) == set()


@pytest.mark.parametrize(
    ("clients", "counsellors", "small"),
    [(10, 5, True), (11, 4, True), (11, 5, False), (0, 0, False), (0, 5, True)],
)
def test_eleven_clients_and_five_counsellors_are_enough(
    clients: int, counsellors: int, small: bool
) -> None:
    assert CellSize(clients, counsellors).too_small is small


def test_one_small_cell_suppresses_three_others() -> None:
    """A single gap in a row or column with a total could be computed by subtraction."""
    inner = {(r, c): ENOUGH for r in range(3) for c in range(3)} | {(0, 0): FEW}
    table = with_totals(inner, 3, 3)
    chosen = suppressed_cells(table)
    assert len(chosen) == 4
    assert all(r < 3 and c < 3 for r, c in chosen), (
        "totals are about more people and are not suppressed"
    )


def test_a_cell_that_joins_two_cycles_causes_further_suppression() -> None:
    """Every row and column has at least two gaps or none, and still (1, 2) could be derived.

    x x . . .        The cycles (0,0)-(0,1)-(1,1)-(1,0) and (2,2)-(2,3)-(3,3)-(3,2) are joined only
    x x x . .        by (1, 2): rows 0 and 1 minus columns 0 and 1 give its value.
    . . x x .
    . . x x .
    """
    small = {(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 2), (2, 3), (3, 2), (3, 3)}
    inner = {(r, c): FEW if (r, c) in small else ENOUGH for r in range(4) for c in range(4)}
    table = with_totals(inner, 4, 4)
    assert derivable(table, small) == {(1, 2)}
    assert small < suppressed_cells(table)


def test_an_incomplete_table_is_rejected() -> None:
    with pytest.raises(ValueError, match="all its cells"):
        suppressed_cells({(0, 0): ENOUGH, (1, 1): ENOUGH})
