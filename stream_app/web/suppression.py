"""Which cells of a table of cohorts may be shown.

A cell about too few people is hidden. Because rows and columns are shown with their totals, a
hidden cell could be worked out from the others of its line; so further cells are hidden until no
hidden value follows from what is shown.

Totals are cells like the others: the table has a last row and a last column that hold them. Let
rows and columns be the nodes of a graph and each hidden cell an edge between its row and its
column. Every line gives one equation (the parts make the total), and the value of a hidden cell
follows from these equations exactly where its edge is a bridge, that is, where it lies on no
circle. So cells are added until the graph has no bridge. (Gusfield 1988, "A graph theoretic
approach to statistical data security".)

This guards values that add up (counts and sums) against exact derivation. What people know from
elsewhere, and bounds ("at most 7"), are outside of it.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MIN_CLIENTS: Final = 11
MIN_COUNSELLORS: Final = 5

Place = tuple[int, int]
"""Row and column of a cell, totals included."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many people a cell is about."""

    clients: int
    counsellors: int

    @property
    def too_small(self) -> bool:
        """Some, but too few. An empty cell is about nobody, and shown as empty."""
        few = self.clients < MIN_CLIENTS or self.counsellors < MIN_COUNSELLORS
        return few and (self.clients > 0 or self.counsellors > 0)


def hidden(cells: Mapping[Place, Size]) -> set[Place]:
    """The cells to hide, in a full table whose last row and last column are totals.

    Raises:
        ValueError: the table has holes, or no room for totals.
    """
    rows = 1 + max((row for row, _ in cells), default=0)
    columns = 1 + max((column for _, column in cells), default=0)
    if len(cells) != rows * columns or rows < 2 or columns < 2:
        raise ValueError("a table of cohorts needs all its cells, totals among them")
    chosen = {place for place, size in cells.items() if size.too_small}
    while (bridge := _bridge(chosen)) is not None:
        chosen |= _circle(cells, chosen, bridge)
    return chosen


def _circle(cells: Mapping[Place, Size], chosen: set[Place], bridge: Place) -> set[Place]:
    """The cells of the circle through the bridge that hides the fewest people more.

    Dijkstra's shortest path from the bridge's row to its column; a hidden cell costs nothing, and
    an empty one the most, because a gap where everybody expects nothing hides little.
    """
    most = 1 + sum(size.clients for size in cells.values())
    waiting: list[tuple[int, list[Node], list[Place]]] = [(0, [_row(bridge)], [])]
    done: set[Node] = set()
    while waiting:
        cost, nodes, path = heapq.heappop(waiting)
        if nodes[-1] == _column(bridge):
            return set(path)
        if nodes[-1] in done:
            continue
        done.add(nodes[-1])
        for place, size in cells.items():
            ends = {_row(place), _column(place)}
            if place != bridge and nodes[-1] in ends:
                [node] = ends - {nodes[-1]}
                step = 0 if place in chosen else (size.clients or most)
                heapq.heappush(waiting, (cost + step, [*nodes, node], [*path, place]))
    raise AssertionError("a table of two by two and more has a circle through each cell")


def _bridge(chosen: set[Place]) -> Place | None:
    """A hidden cell that lies on no circle."""
    for place in sorted(chosen):
        if _column(place) not in _reached(chosen - {place}, _row(place)):
            return place
    return None


Node = tuple[str, int]


def _row(place: Place) -> Node:
    return "row", place[0]


def _column(place: Place) -> Node:
    return "column", place[1]


def _reached(chosen: set[Place], start: Node) -> set[Node]:
    """Rows and columns that hidden cells join with this one."""
    reached = {start}
    grown = True
    while grown:
        grown = False
        for place in chosen:
            ends = {_row(place), _column(place)}
            if ends & reached and not ends <= reached:
                reached |= ends
                grown = True
    return reached
