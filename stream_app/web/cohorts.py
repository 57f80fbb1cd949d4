"""Teams by domain, with the cells hidden that are about too few people."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from stream_app.contracts.scores import MECHANISMS
from stream_app.store.reading.cohorts import CohortSession
from stream_app.web.suppression import Place, Size, hidden
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
    """``sessions`` is None where the cell is hidden; ``means`` by mechanism."""

    sessions: int | None
    means: dict[str, Mean]


@dataclass(frozen=True, slots=True)
class CohortTable:
    """Rows are teams, columns domains, both by name; the last of each is over all."""

    teams: list[str]
    domains: list[str]
    cells: list[list[Cell]]


def table(found: Sequence[CohortSession]) -> CohortTable:
    """Teams by domain. What is hidden cannot be worked out from what is shown."""
    teams = sorted({session.team or NONE for session in found})
    domains = sorted({session.domain or NONE for session in found})
    of = {
        (row, column): [
            session
            for session in found
            if team in (None, session.team or NONE) and domain in (None, session.domain or NONE)
        ]
        for row, team in enumerate([*teams, None])
        for column, domain in enumerate([*domains, None])
    }
    gone = hidden({place: _size(some) for place, some in of.items()}) if found else set()

    def cell(place: Place) -> Cell:
        return Cell(None, {}) if place in gone else Cell(len(of[place]), _means(of[place]))

    rows, columns = range(len(teams) + 1), range(len(domains) + 1)
    return CohortTable(
        [*teams, ALL],
        [*domains, ALL],
        [[cell((row, column)) for column in columns] for row in rows],
    )


def _size(some: Sequence[CohortSession]) -> Size:
    clients = {name for session in some for name in session.clients}
    counsellors = {name for session in some for name in session.counsellors}
    return Size(len(clients), len(counsellors))


def _means(some: Sequence[CohortSession]) -> dict[str, Mean]:
    found = {}
    for name in MECHANISMS:
        values = [session.means[name] for session in some if name in session.means]
        if len(values) > 1:
            low, high = interval(values)
            found[name] = Mean(fmean(values), max(0.0, low), min(2.0, high))
    return found
