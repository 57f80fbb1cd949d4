"""Trainings, releases and other events of a platform, to be marked on curves.

A CSV file (``RAPPORT_MARKED_DAYS``) with the columns date, kind and name, and optionally team; it
is read whenever a page or report is made, and never stored.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from stream_app.errors import RapportError

COLUMNS: Final = ("date", "kind", "name")
KINDS: Final = ("training", "release", "other")
TRAINING: Final = KINDS[0]


class MarkedDaysError(RapportError):
    """The file of marked days cannot be used."""


@dataclass(frozen=True, slots=True)
class MarkedDay:
    """An event on a day; ``team``: the only one that it concerned, or empty for all."""

    day: date
    kind: str
    name: str
    team: str = ""

    @property
    def words(self) -> str:
        """The marked day in words, for a list below a chart.

        >>> MarkedDay(date(2026, 3, 2), "training", "Reflective listening", "north").words
        'training “Reflective listening” (team north)'
        >>> MarkedDay(date(2026, 3, 2), "other", "Office moved").words
        'Office moved'
        """
        named = self.name if self.kind == "other" else f"{self.kind} “{self.name}”"
        return f"{named} (team {self.team})" if self.team else named


def read(file: Path | None, team: str | None = None) -> list[MarkedDay]:
    """The days in order of time; with a team, without those that concerned other teams only.

    Raises:
        MarkedDaysError: the file cannot be read, or a row is wrong.
    """
    if file is None:
        return []
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream)
            if not set(COLUMNS) <= set(reader.fieldnames or ()):
                raise MarkedDaysError(f"{file.name} needs the columns {', '.join(COLUMNS)}")
            found = list(_days(file, reader))
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise MarkedDaysError(f"{file.name} cannot be read ({type(problem).__name__})") from None
    known = [each for each in found if team is None or each.team in ("", team)]
    return sorted(known, key=lambda each: (each.day, each.name))


def trained_team(days: Sequence[MarkedDay], at: date | None) -> str:
    """The team that the training of a day concerned; empty for all, or if there were several.

    >>> north = MarkedDay(date(2026, 3, 2), "training", "Reflective listening", "north")
    >>> trained_team([north], date(2026, 3, 2)), trained_team([north, north], date(2026, 3, 2))
    ('north', '')
    """
    teams = [each.team for each in days if each.kind == TRAINING and each.day == at]
    return teams[0] if len(teams) == 1 else ""


def write(file: Path, days: Sequence[MarkedDay]) -> None:
    """Write a new file, or over an old one."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow((*COLUMNS, "team"))
        writer.writerows((each.day, each.kind, each.name, each.team) for each in days)


def _days(file: Path, reader: "csv.DictReader[str]") -> Iterator[MarkedDay]:
    for row in reader:
        cells = {name: (row.get(name) or "").strip() for name in (*COLUMNS, "team")}
        if any(cells.values()):
            yield _day(f"{file.name}, line {reader.line_num}", cells)


def _day(place: str, cells: Mapping[str, str]) -> MarkedDay:
    try:
        day = date.fromisoformat(cells["date"])
    except ValueError:
        raise MarkedDaysError(f"{place}: {cells['date']!r} is no day (YYYY-MM-DD)") from None
    if cells["kind"] not in KINDS:
        raise MarkedDaysError(f"{place}: the kind {cells['kind']!r} is none of {', '.join(KINDS)}")
    if not cells["name"]:
        raise MarkedDaysError(f"{place}: the name is empty")
    return MarkedDay(day, cells["kind"], cells["name"], cells["team"])
