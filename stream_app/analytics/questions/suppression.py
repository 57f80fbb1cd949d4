"""Cell suppression for tables about groups of people.

Primary suppression hides cells about too few people. Because row and column totals are shown, a
hidden value could still be computed from the rest of its row or column; so secondary suppression
hides further cells until no hidden value can be derived.

Totals are cells, too: they are the last row and the last column. Take rows and columns as the nodes
of a graph and each hidden cell as an edge between its row and its column. Each row and column gives
one equation (the cells add up to the total). The value of a hidden cell follows from these
equations if and only if its edge is a bridge, that is, on no cycle. So cells are added until the
graph has no bridge (Gusfield 1988, "A graph theoretic approach to statistical data security").

This protects additive values (counts and sums) against exact derivation, but not against bounds
("at most 7") or knowledge from other sources.
"""

import heapq
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

MIN_CLIENTS: Final = 11
MIN_COUNSELLORS: Final = 5

CellIndex = tuple[int, int]
"""Row and column of a cell, totals included."""


class CellSize(Struct, frozen=True):
    """Number of people that a cell is about."""

    clients: int
    counsellors: int

    @property
    def too_small(self) -> bool:
        """Whether the cell must be suppressed. Cells about no one are shown as empty."""
        few = self.clients < MIN_CLIENTS or self.counsellors < MIN_COUNSELLORS
        return few and (self.clients > 0 or self.counsellors > 0)


def suppressed_cells(cells: Mapping[CellIndex, CellSize]) -> set[CellIndex]:
    """The cells to suppress in a complete table whose last row and column are totals.

    Raises:
        ValueError: a cell is missing, or the table has fewer than two rows or columns.
    """
    rows = 1 + max((row for row, _ in cells), default=0)
    columns = 1 + max((column for _, column in cells), default=0)
    if len(cells) != rows * columns or rows < 2 or columns < 2:
        raise ValueError("the table must have all its cells, including totals")
    hidden = {cell for cell, size in cells.items() if size.too_small}
    while (bridge := _bridge(hidden)) is not None:
        hidden |= _cycle(cells, hidden, bridge)
    return hidden


def _cycle(
    cells: Mapping[CellIndex, CellSize], hidden: set[CellIndex], bridge: CellIndex
) -> set[CellIndex]:
    """The cells of the cycle through the bridge that hides the fewest additional people.

    Dijkstra's shortest path from the bridge's row to its column. Hidden cells cost nothing; empty
    cells cost the most, because hiding a value that readers can guess protects little.
    """
    max_cost = 1 + sum(size.clients for size in cells.values())
    queue: list[tuple[int, list[Node], list[CellIndex]]] = [(0, [_row(bridge)], [])]
    done: set[Node] = set()
    while queue:
        cost, nodes, path = heapq.heappop(queue)
        if nodes[-1] == _column(bridge):
            return set(path)
        if nodes[-1] in done:
            continue
        done.add(nodes[-1])
        for cell, size in cells.items():
            ends = {_row(cell), _column(cell)}
            if cell != bridge and nodes[-1] in ends:
                [node] = ends - {nodes[-1]}
                step = 0 if cell in hidden else (size.clients or max_cost)
                heapq.heappush(queue, (cost + step, [*nodes, node], [*path, cell]))
    raise AssertionError("every cell of a table of at least two by two is on a cycle")


def _bridge(hidden: set[CellIndex]) -> CellIndex | None:
    """A hidden cell that is on no cycle, or None."""
    for cell in sorted(hidden):
        if _column(cell) not in _connected(hidden - {cell}, _row(cell)):
            return cell
    return None


Node = tuple[str, int]


def _row(cell: CellIndex) -> Node:
    return "row", cell[0]


def _column(cell: CellIndex) -> Node:
    return "column", cell[1]


def _connected(hidden: set[CellIndex], start: Node) -> set[Node]:
    """Rows and columns connected to ``start`` through hidden cells."""
    reached = {start}
    grown = True
    while grown:
        grown = False
        for cell in hidden:
            ends = {_row(cell), _column(cell)}
            if ends & reached and not ends <= reached:
                reached |= ends
                grown = True
    return reached
