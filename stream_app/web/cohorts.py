"""Teams by domain, with small cells suppressed."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from stream_app.contracts.scores import MECHANISMS
from stream_app.core.suppression import CellIndex, CellSize, suppressed_cells
from stream_app.store.queries.cohorts import CohortSession
from stream_app.web.trends import interval

ALL: Final = "all"
NONE: Final = "not stated"


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean level in [0, 2] with its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Cell:
    """``sessions`` is None if the cell is suppressed; ``means`` by mechanism."""

    sessions: int | None
    means: dict[str, Mean]


@dataclass(frozen=True, slots=True)
class CohortTable:
    """Rows are teams, columns are domains, both ordered by name and followed by a total."""

    teams: list[str]
    domains: list[str]
    cells: list[list[Cell]]


def build_table(found: Sequence[CohortSession]) -> CohortTable:
    """Build the table. Suppressed values cannot be derived from the shown ones."""
    teams = sorted({session.team or NONE for session in found})
    domains = sorted({session.domain or NONE for session in found})
    groups = {
        (row, column): [
            session
            for session in found
            if team in (None, session.team or NONE) and domain in (None, session.domain or NONE)
        ]
        for row, team in enumerate([*teams, None])
        for column, domain in enumerate([*domains, None])
    }
    sizes = {index: _size(group) for index, group in groups.items()}
    suppressed = suppressed_cells(sizes) if found else set()

    def cell(index: CellIndex) -> Cell:
        if index in suppressed:
            return Cell(None, {})
        return Cell(len(groups[index]), _means(groups[index]))

    rows, columns = range(len(teams) + 1), range(len(domains) + 1)
    return CohortTable(
        [*teams, ALL],
        [*domains, ALL],
        [[cell((row, column)) for column in columns] for row in rows],
    )


def _size(group: Sequence[CohortSession]) -> CellSize:
    clients = {name for session in group for name in session.clients}
    counsellors = {name for session in group for name in session.counsellors}
    return CellSize(len(clients), len(counsellors))


def _means(group: Sequence[CohortSession]) -> dict[str, Mean]:
    found = {}
    for name in MECHANISMS:
        values = [session.means[name] for session in group if name in session.means]
        if len(values) > 1:
            low, high = interval(values)
            found[name] = Mean(fmean(values), max(0.0, low), min(2.0, high))
    return found
