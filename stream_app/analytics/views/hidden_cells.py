"""Which cells of linked tables to hide, so that nothing follows about too few people.

A cell about too few people is hidden. Totals are cells like the others, and equations say which
parts make which total: teams and domains make a month, teams make a week, weeks make a month, days
make a week, cohorts make a month, a team's cohorts its month, and all teams' cohorts a cohort. All
tables that share cells are judged together, because a reader may subtract across them.

What is hidden is protected in two ways. No protected value follows from the shown ones: in the
space of all changes of the cells that keep the equations and what is shown, it still changes. So
does the sum of an equation's small parts, where they are about too few people even together.

Cells are shown one after the other, totals first and larger cells before smaller ones, each only if
both still hold. Whatever may be shown stays allowed when less is shown, so no choice of cells to
hide shows a more important cell than this one does (it is optimal in the order of importance). The
result depends on the cells alone.

This guards counts and sums, which add up. What people know from elsewhere is outside of it; how
narrow bounds on hidden counts get is tried in the tests (decision 8).
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

FEWEST_CLIENTS: Final = 11
FEWEST_COUNSELLORS: Final = 5
_CERTAIN: Final = 1 - 1e-6
"""A leverage of 1, but for rounding: the value follows from the equations."""
_FIXED: Final = 1e-9
"""Squared length of a cell's changes that is none, but for rounding."""

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
    """The cells to hide; ``also`` are hidden and protected whatever their size."""
    small = {key for key, size in cells.items() if size.too_small}
    protected = small | set(also)
    if not protected:
        return set()
    sums = [{key} for key in protected]
    for equation in equations:
        parts = small & set(equation.parts)
        if len(parts) > 1 and _together(cells[key] for key in parts).too_small:
            sums.append(parts)
    order = sorted(cells, key=lambda key: (key in protected, *_importance(key, cells[key])))
    changes = _Changes(order, equations, sums)
    return {key for key in order if not changes.stopped()}


def hidden_further(
    cells: Mapping[Key, Size],
    equations: Sequence[Equation],
    gone: Collection[Key],
    keys: Collection[Key],
) -> set[Key]:
    """Where ``gone`` are hidden already, what to hide so that ``keys`` are protected, too."""
    chosen = {*gone, *keys}
    if follows(equations, chosen).isdisjoint(keys):
        return chosen
    return chosen | hidden(cells, equations, keys)


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


class _Changes:
    """Changes of cells that keep the equations and the shown cells: a basis, one row a cell.

    ``order``: of the rows, which leave one after the other. ``sums``: sets of cells whose sum must
    still change, whatever is shown.
    """

    def __init__(
        self,
        order: Sequence[Key],
        equations: Sequence[Equation],
        sums: Iterable[Collection[Key]],
    ) -> None:
        import numpy as np  # noqa: PLC0415  # a web process needs the limits alone

        at = {key: place for place, key in enumerate(order)}
        matrix = np.zeros((len(equations), len(order)))
        for row, equation in enumerate(equations):
            for key in equation.parts:
                matrix[row, at[key]] += 1.0
            matrix[row, at[equation.total]] -= 1.0
        _, values, right = np.linalg.svd(matrix)
        self._basis = right[int((values > _FIXED).sum()) :].T
        places = [[at[key] for key in keys] for keys in sums]
        self._protected = np.array([self._basis[some].sum(axis=0) for some in places])

    def stopped(self) -> bool:
        """Let the next cell change no more, unless a protected sum would not change then either."""
        row, self._basis = self._basis[0], self._basis[1:]
        length = float(row @ row)
        along = self._protected @ row
        left = (self._protected**2).sum(axis=1) - along**2 / max(length, _FIXED)
        if (left <= _FIXED).any():
            return False
        if length > _FIXED:
            self._turn(row, length)
        return True

    def _turn(self, row: Any, length: float) -> None:
        """Reflect the basis so that this row lies along its last column, and drop the column."""
        mirror = row.copy()
        mirror[-1] += (1 if row[-1] >= 0 else -1) * length**0.5
        mirror *= (2 / (mirror @ mirror)) ** 0.5
        for name in ("_basis", "_protected"):
            rows = getattr(self, name)
            rows -= (rows @ mirror)[:, None] * mirror
            setattr(self, name, rows[:, :-1])


def _together(sizes: Iterable[Size]) -> Size:
    known = list(sizes)
    return Size(sum(s.clients for s in known), sum(s.counsellors for s in known), 0)


def _importance(key: Key, size: Size) -> tuple[int, int, str]:
    return -size.rank, -size.clients, repr(key)
