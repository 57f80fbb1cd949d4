"""Which cells of linked tables to hide, so that nothing follows about too few people.

A cell about too few people is hidden. Totals are cells like the others, and equations say which
parts make which total: teams and domains make a month, teams make a week, weeks make a month, days
make a week, cohorts make a month, a team's cohorts its month, and all teams' cohorts a cohort. All
tables that share cells are judged together, because a reader may subtract across them.

What is hidden is protected in two ways. No hidden value follows from the shown ones: the unit
vector of a hidden cell does not lie in the row space of the equations, taken over hidden cells
alone. And no single subtraction gives the sum of hidden cells that together are about too few
people. Further cells are hidden until both hold, those of the shortest periods first. The result
depends on the cells alone.

This guards counts and sums, which add up. What people know from elsewhere, and bounds ("at most
7"), are outside of it.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Final, NamedTuple

FEWEST_CLIENTS: Final = 11
FEWEST_COUNSELLORS: Final = 5
_CERTAIN: Final = 1 - 1e-6
"""A leverage of 1, but for rounding: the value follows from the equations."""

Key = Hashable


class Size(NamedTuple):
    """How many people a cell is about; ``rank``: cells of a lower one are hidden rather."""

    clients: int
    counsellors: int
    rank: int

    @property
    def too_small(self) -> bool:
        """Some people, but too few."""
        few = self.clients < FEWEST_CLIENTS or self.counsellors < FEWEST_COUNSELLORS
        return few and (self.clients > 0 or self.counsellors > 0)


class Equation(NamedTuple):
    """The parts add up to the total; cells that do not exist are zero and left out."""

    total: Key
    parts: tuple[Key, ...]

    @property
    def cells(self) -> tuple[Key, ...]:
        """All of them."""
        return (self.total, *self.parts)


def hidden(
    cells: Mapping[Key, Size], equations: Sequence[Equation], also: Collection[Key] = ()
) -> set[Key]:
    """The cells to hide; ``also`` are hidden whatever their size."""
    equations = sorted(
        equations, key=lambda each: (repr(each.total), sorted(map(repr, each.parts)))
    )
    chosen = {key for key, size in cells.items() if size.too_small} | set(also)
    while unsafe := _unsafe(cells, equations, chosen):
        for equation in unsafe:
            shown = [key for key in equation.cells if key not in chosen]
            if shown:
                chosen.add(min(shown, key=lambda key: _price(key, cells[key])))
    return chosen


def follows(equations: Sequence[Equation], chosen: Collection[Key]) -> set[Key]:
    """Hidden cells whose values follow from the shown ones."""
    import numpy as np  # noqa: PLC0415  # a web process needs the limits alone

    places = {key: place for place, key in enumerate(sorted(chosen, key=repr))}
    used = [each for each in equations if any(key in places for key in each.cells)]
    matrix = np.zeros((len(used), len(places)))
    for row, equation in enumerate(used):
        for key in equation.parts:
            if key in places:
                matrix[row, places[key]] += 1.0
        if equation.total in places:
            matrix[row, places[equation.total]] -= 1.0
    if not used:
        return set()
    inverse = np.linalg.pinv(matrix @ matrix.T, hermitian=True)
    leverage = np.einsum("ij,ik,kj->j", matrix, inverse, matrix, optimize=True)
    return {key for key, place in places.items() if leverage[place] > _CERTAIN}


def _unsafe(
    cells: Mapping[Key, Size], equations: Sequence[Equation], chosen: set[Key]
) -> list[Equation]:
    """Equations with a shown cell to hide, because they give something away."""
    known = follows(equations, chosen)
    return [
        equation
        for equation in equations
        if any(key not in chosen for key in equation.cells)
        and (any(key in known for key in equation.cells) or _is_small(cells, equation, chosen))
    ]


def _is_small(cells: Mapping[Key, Size], equation: Equation, chosen: set[Key]) -> bool:
    """Whether the total less what is shown of it is about too few people."""
    if equation.total in chosen:
        return False
    left = [cells[key] for key in equation.parts if key in chosen]
    clients, counsellors = sum(s.clients for s in left), sum(s.counsellors for s in left)
    return Size(clients, counsellors, 0).too_small


def _price(key: Key, size: Size) -> tuple[int, int, str]:
    return size.rank, size.clients, repr(key)
