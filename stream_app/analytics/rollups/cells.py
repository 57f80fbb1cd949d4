"""The cells of one reporting month: what sessions add up to, and which cells are hidden.

The kinds of cells are tables that a reader may subtract from each other, so what is hidden is
decided for all of them together. Cells about one counsellor stand apart: they are for those who may
see that counsellor, and shown to nobody else.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from statistics import NormalDist
from typing import Any, Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection

from stream_app.analytics.views.hidden_cells import (
    FEWEST_CLIENTS,
    Equation,
    Key,
    Size,
    hidden,
    hidden_further,
)
from stream_app.contracts.events import Role
from stream_app.store.database.tables import (
    ROLLED_UP,
    rollup_counsellors,
    rollup_sessions,
    session_speakers,
)
from stream_app.store.lifecycle.reporting_months import end_of
from stream_app.store.lifecycle.rollup_marks import OF_A_COUNSELLOR

_r: Final = rollup_sessions.c
_COUNTS: Final = ("sessions", "turns", "counsellor_turns")
_KEYS: Final = ("start", "team", "domain", "cohort", "counsellor")
_NOTHING: Final[dict[str, Any]] = {"team": "", "domain": "", "cohort": 0, "counsellor": ""}


class Kind(Struct, frozen=True):
    """A way of grouping sessions into cells; of two, the one of the lower ``rank`` is hidden."""

    name: str
    start: sa.Column[Any]
    by: tuple[str, ...]
    rank: int


DAY, WEEK, WEEK_ALL, COHORT = "day", "week", "week_all", "cohort"
COHORT_TEAM = "cohort_team"
MONTH, MONTH_TEAM, MONTH_DOMAIN, MONTH_ALL = "month", "month_team", "month_domain", "month_all"
KINDS: Final = (
    Kind(DAY, _r.day, (), 0),
    Kind(WEEK, _r.week, ("team",), 1),
    Kind(WEEK_ALL, _r.week, (), 2),
    Kind(COHORT, _r.month, ("cohort",), 3),
    Kind(COHORT_TEAM, _r.month, ("team", "cohort"), 2),
    Kind(MONTH, _r.month, ("team", "domain"), 4),
    Kind(MONTH_TEAM, _r.month, ("team",), 5),
    Kind(MONTH_DOMAIN, _r.month, ("domain",), 5),
    Kind(MONTH_ALL, _r.month, (), 6),
    Kind(OF_A_COUNSELLOR, _r.week, ("counsellor",), 0),
)
"""Totals over all teams and domains are kinds of their own."""


class Cell(Struct):
    """A row of ``rollup_cells`` and its rows of ``rollup_means``."""

    kind: Kind
    row: dict[str, Any]
    means: list[dict[str, Any]]

    @property
    def key(self) -> Key:
        """The cell within its month and bundle."""
        return (self.kind.name, *(str(self.row[name]) for name in _KEYS))


def of_month(connection: Connection, month: date) -> list[Cell]:
    """All cells of a month, by bundle, with what is hidden."""
    found = [cell for kind in KINDS for cell in _of_kind(connection, kind, month)]
    by_bundle: dict[str, list[Cell]] = defaultdict(list)
    for cell in found:
        if cell.kind.name != OF_A_COUNSELLOR:
            by_bundle[cell.row["bundle"]].append(cell)
    for cells in by_bundle.values():
        _hide(cells)
    return found


def _of_kind(connection: Connection, kind: Kind, month: date) -> Iterator[Cell]:
    names = _key_names(kind)
    people = _people(connection, kind, month)
    until = end_of(month)
    for found in connection.execute(_sums(kind), {"month": month}).mappings():
        key = {name: found[column] for name, column in names.items()}
        place = {"kind": kind.name, **_NOTHING, **key, "bundle": found["bundle"]}
        dated = {**place, "month": month, "until": until}
        clients, counsellors = people[(*key.values(), found["bundle"])]
        row = {
            **dated,
            **{name: int(found[name]) for name in _COUNTS},
            "clients": clients,
            "counsellors": counsellors,
            "hidden": False,
        }
        means = [
            {
                **dated,
                "measure": name,
                "n": int(found[f"n_{name}"]),
                "total": int(found[f"total_{name}"]),
                "squares": _squares(found, name, kind),
                "hidden": False,
            }
            for name in ROLLED_UP
            if found[f"n_{name}"]
        ]
        yield Cell(kind, row, means)


def _people(
    connection: Connection, kind: Kind, month: date
) -> dict[tuple[Any, ...], tuple[int, int]]:
    """How many clients and counsellors, by key and bundle."""
    found = map(tuple, connection.execute(_counts_of_people(kind), {"month": month}))
    return {row[:-2]: (row[-2], row[-1]) for row in found}


@cache
def _key_names(kind: Kind) -> dict[str, str]:
    """The result's columns of a kind's key."""
    return {name: column.name for name, column in _source(kind)[1].items()}


@cache
def _sums(kind: Kind) -> sa.Select[Any]:
    """Return the statement that sums a kind's sessions; built once, as it has many columns.

    Summed by counsellor first, whose sessions are alike: ``apart_`` and ``both_`` are the sums of
    each counsellor's squared number and of that times the total, ``alike_`` of squared totals.
    """
    source, keys = _source(kind)
    speakers = session_speakers.alias("speakers_of_month")
    one = (
        sa.select(speakers.c.session_id, sa.func.min(speakers.c.speaker).label("person"))
        .join(rollup_sessions, _r.session_id == speakers.c.session_id)
        .where(_r.month == sa.bindparam("month"), speakers.c.role == Role.COUNSELLOR.value)
        .group_by(speakers.c.session_id)
        .subquery("one")
    )
    grouped = [*keys.values(), _r.bundle]
    by_person = (
        sa.select(
            *grouped,
            one.c.person,
            sa.func.count().label("sessions"),
            sa.func.sum(_r.turns).label("turns"),
            sa.func.sum(_r.counsellor_turns).label("counsellor_turns"),
            *(
                column
                for name in ROLLED_UP
                for column in (
                    sa.func.count(_r[name]).label(f"n_{name}"),
                    sa.func.coalesce(sa.func.sum(_r[name]), 0).label(f"total_{name}"),
                    sa.func.coalesce(sa.func.sum(_r[name] * _r[name]), 0).label(f"squares_{name}"),
                )
            ),
        )
        .select_from(source.outerjoin(one, one.c.session_id == _r.session_id))
        .where(_r.month == sa.bindparam("month"))
        .group_by(*grouped, one.c.person)
        .subquery("by_person")
    )
    some = by_person.c
    of = [some[column.name] for column in grouped]
    return (
        sa.select(
            *of,
            *(sa.func.sum(some[name]).label(name) for name in _COUNTS),
            *(column for name in ROLLED_UP for column in _of_measure(some, name)),
        )
        .group_by(*of)
        .order_by(*of)
    )


def _of_measure(some: Any, name: str) -> Iterator[sa.ColumnElement[Any]]:
    n, total = some[f"n_{name}"], sa.cast(some[f"total_{name}"], sa.Numeric)
    yield sa.func.sum(n).label(f"n_{name}")
    yield sa.func.sum(some[f"total_{name}"]).label(f"total_{name}")
    yield sa.func.sum(some[f"squares_{name}"]).label(f"squares_{name}")
    yield sa.func.sum(sa.case((n > 0, 1), else_=0)).label(f"people_{name}")
    yield sa.func.sum(n * n).label(f"apart_{name}")
    yield sa.func.sum(n * total).label(f"both_{name}")
    yield sa.func.sum(total * total).label(f"alike_{name}")


def _squares(found: Mapping[Any, Any], name: str, kind: Kind) -> int:
    """The sum of squares that gives an interval clustered by counsellor.

    The views take sessions for independent. Where a cell is about several counsellors, the sum is
    chosen so that the interval there is Student's with the variance between counsellors.
    """
    n, total, squares, people, apart, both, alike = (
        int(found[f"{part}_{name}"])
        for part in ("n", "total", "squares", "people", "apart", "both", "alike")
    )
    if people < 2 or kind.name == OF_A_COUNSELLOR:
        return squares
    between = alike * n * n - 2 * total * both * n + total * total * apart
    # between / n^2: the sum of squared deviations of counsellors' sums from what n predicts
    reach = _wider(people - 1) * people / (people - 1)
    clustered = total * total / n + reach * between * (n - 1) / n**3
    return max(squares, round(clustered))


@cache
def _wider(freedom: int) -> float:
    """Squared ratio of Student's 97.5 % quantile to the normal one (Cornish and Fisher)."""
    z = NormalDist().inv_cdf(0.975)
    parts = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return float((1 + sum(each / freedom**at for at, each in enumerate(parts, 1)) / z) ** 2)


@cache
def _counts_of_people(kind: Kind) -> sa.Select[Any]:
    """The number of clients and of counsellors of a kind's cells."""
    source, keys = _source(kind)
    who = session_speakers.alias("who")
    grouped = [*keys.values(), _r.bundle]

    def distinct(role: Role) -> sa.ColumnElement[int]:
        return sa.func.count(sa.distinct(sa.case((who.c.role == role.value, who.c.speaker))))

    return (
        sa.select(*grouped, distinct(Role.CLIENT), distinct(Role.COUNSELLOR))
        .select_from(source.outerjoin(who, who.c.session_id == _r.session_id))
        .where(_r.month == sa.bindparam("month"))
        .group_by(*grouped)
    )


def _source(kind: Kind) -> tuple[sa.FromClause, dict[str, sa.ColumnElement[Any]]]:
    """Return the source of a kind's cells, and the columns of their key."""
    keys: dict[str, sa.ColumnElement[Any]] = {"start": kind.start}
    source: sa.FromClause = rollup_sessions
    speakers, joined = session_speakers.c, rollup_counsellors.c
    of_counsellors = speakers.role == Role.COUNSELLOR.value
    for name in kind.by:
        if name == "counsellor":
            source = source.join(
                session_speakers, (speakers.session_id == _r.session_id) & of_counsellors
            )
            keys[name] = speakers.speaker
        elif name == "cohort":
            year = sa.cast(sa.extract("year", joined.joined), sa.Integer).label("cohort")
            cohorts = (
                sa.select(speakers.session_id, year)
                .join(rollup_counsellors, joined.speaker == speakers.speaker)
                .where(of_counsellors)
                .distinct()
                .subquery("cohorts")
            )
            source = source.join(cohorts, cohorts.c.session_id == _r.session_id)
            keys[name] = cohorts.c.cohort
        else:
            keys[name] = _r[name]
    return source, keys


def _hide(cells: Sequence[Cell]) -> None:
    """Mark what is hidden of one month and bundle, then of measures that few sessions have."""
    by_key = {cell.key: cell for cell in cells}
    sums = equations(by_key)
    sizes = {
        key: Size(cell.row["clients"], cell.row["counsellors"], cell.kind.rank)
        for key, cell in by_key.items()
    }
    gone = hidden(sizes, sums)
    for key in gone:
        by_key[key].row["hidden"] = True
    rare: dict[str, set[Key]] = defaultdict(set)
    for key, cell in by_key.items():
        for mean in cell.means:
            mean["hidden"] = key in gone
            if key not in gone and mean["n"] < FEWEST_CLIENTS:
                rare[mean["measure"]].add(key)
    for measure, keys in rare.items():
        for key in hidden_further(sizes, sums, gone, keys):
            for mean in by_key[key].means:
                mean["hidden"] |= mean["measure"] == measure


def equations(by_key: Mapping[Key, Cell]) -> list[Equation]:
    """Return the equations between cells within a month and bundle."""
    parts: dict[tuple[_Total, str], list[Key]] = defaultdict(list)
    for key, cell in by_key.items():
        for total in _totals(cell):
            parts[total, cell.kind.name].append(key)
    totals = {
        tuple(cell.row[name] for name in ("kind", "start", "team", "domain", "cohort")): key
        for key, cell in by_key.items()
    }
    return [Equation(totals[total], tuple(some)) for (total, _), some in parts.items()]


_Total = tuple[str, date, str, str, int]
"""Kind, start, team, domain and cohort of a cell that is a sum of others."""


def _totals(cell: Cell) -> list[_Total]:
    """The sums that a cell is part of."""
    start, month = cell.row["start"], cell.row["month"]
    team, domain = cell.row["team"], cell.row["domain"]
    everything, of_team = (MONTH_ALL, month, "", "", 0), (MONTH_TEAM, month, team, "", 0)
    match cell.kind.name:
        case "day":
            return [(WEEK_ALL, start - timedelta(days=start.weekday()), "", "", 0)]
        case "week":
            return [(WEEK_ALL, start, "", "", 0), of_team]
        case "cohort_team":
            return [(COHORT, month, "", "", cell.row["cohort"]), of_team]
        case "month":
            return [of_team, (MONTH_DOMAIN, month, "", domain, 0)]
        case "month_all":
            return []
        case _:
            return [everything]
