"""Curves and tables from the views that hide small cells; needs the service alone.

What is hidden is decided in the views (``hidden_cells``) from finished reporting months, so every
load of a page and every report shows and hides the same cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import sqlalchemy as sa

from stream_app.analytics.questions.result import Curve, Point
from stream_app.analytics.views.shown import ALL
from stream_app.core.measures.catalogue import Use, units
from stream_app.store.stream.repository import Store

SESSIONS: Final = "sessions"
"""The number of ended sessions: a measure without an interval."""
MEASURES: Final[Mapping[str, str]] = {SESSIONS: SESSIONS, **units(Use.ROLL_UPS)}
"""Units by measure."""
EPOCH: Final = date(1970, 1, 1)
WEEKS: Final = "calendar week"
MONTHS: Final = "reporting month"


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its 95 % interval over ``n`` sessions; no interval with one session."""

    n: int
    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class MonthCell:
    """A team and domain in a reporting month; ``sessions`` is None where it is hidden."""

    team: str
    domain: str
    sessions: int | None
    means: dict[str, Mean]


def weekly(store: Store, measure: str, team: str, since: date, until: date) -> list[Curve]:
    """One curve for each bundle, by week; ``team``: a name or ``ALL``."""
    return _curves(store, "week", "team", measure, since, until, team)


def cohorts(
    store: Store,
    measure: str,
    since: date,
    until: date,
    year: int | None = None,
    team: str = ALL,
) -> list[Curve]:
    """Curves by reporting month, one for each joining year and bundle.

    ``year``: only this one; ``team``: a name or ``ALL``.
    """
    return _curves(store, "cohort_month", "cohort", measure, since, until, team, year)


def teams(store: Store) -> list[str]:
    """Names of all teams with a finished reporting month, sorted."""
    query = sa.text("SELECT DISTINCT team FROM shown_month WHERE team <> :all ORDER BY team")
    with store.reading() as connection:
        return [str(name) for name in connection.scalars(query, {"all": ALL})]


def joining_years(store: Store, team: str = ALL) -> list[int]:
    """The cohorts of a team or of all, sorted."""
    query = sa.text(
        "SELECT DISTINCT cohort FROM shown_cohort_month WHERE team = :team ORDER BY cohort"
    )
    with store.reading() as connection:
        return [int(year) for year in connection.scalars(query, {"team": team})]


def months(store: Store) -> dict[date, list[str]]:
    """The finished reporting months, newest first, with the bundles that scored then."""
    query = sa.text(
        "SELECT DISTINCT month, bundle FROM shown_month ORDER BY month DESC, bundle DESC"
    )
    found: dict[date, list[str]] = {}
    with store.reading() as connection:
        for month, bundle in connection.execute(query):
            found.setdefault(_day(month), []).append(bundle)
    return found


def month_cells(
    store: Store, month: date, bundle: str, measures: Sequence[str]
) -> dict[tuple[str, str], MonthCell]:
    """A reporting month by team and domain, totals (``ALL``) included."""
    chosen = {"month": str(month), "bundle": bundle}
    where = "CAST(month AS text) = :month AND bundle = :bundle"
    with store.reading() as connection:
        counts = connection.execute(
            sa.text(f"SELECT team, domain, sessions FROM shown_month WHERE {where}"), chosen
        ).all()
        means = connection.execute(
            sa.text(
                "SELECT team, domain, measure, n, mean, low, high FROM shown_month_measure "
                f"WHERE {where}"
            ),
            chosen,
        ).all()
    cells = {
        (row.team, row.domain): MonthCell(row.team, row.domain, row.sessions, {}) for row in counts
    }
    for row in means:
        if row.measure in measures:
            cells[row.team, row.domain].means[row.measure] = Mean(
                int(row.n), float(row.mean), row.low, row.high
            )
    return cells


def _curves(
    store: Store,
    view: str,
    group: str,
    measure: str,
    since: date,
    until: date,
    team: str,
    year: int | None = None,
) -> list[Curve]:
    """Points in order of time; a hidden cell is a point without a value."""
    period = "week" if view == "week" else "month"
    where = f"CAST({period} AS text) >= :since AND CAST({period} AS text) < :until AND team = :team"
    chosen = {"since": str(since), "until": str(until), "team": team}
    if year is not None:
        where += f" AND {group} = {year:d}"
    keys = f"{period} AS start, {group} AS grp, bundle"
    cells = sa.text(
        f"SELECT {keys}, sessions FROM shown_{view} WHERE {where} "
        f"ORDER BY {group}, bundle, {period}"
    )
    means = sa.text(
        f"SELECT {keys}, n, mean, low, high FROM shown_{view}_measure "
        f"WHERE {where} AND measure = :measure"
    )
    with store.reading() as connection:
        known = {
            (_day(row.start), row.grp, row.bundle): row
            for row in connection.execute(means, {**chosen, "measure": measure})
        }
        found: dict[tuple[str, str], list[Point]] = {}
        for row in connection.execute(cells, chosen):
            key = _day(row.start), row.grp, row.bundle
            point = _count(row) if measure == SESSIONS else _mean(key[0], known.get(key))
            found.setdefault((str(row.grp), row.bundle), []).append(point)
    axis = WEEKS if period == "week" else MONTHS
    return [
        Curve(measure, measure, name, bundle, axis, MEASURES[measure], points)
        for (name, bundle), points in found.items()
    ]


def _count(row: Any) -> Point:
    day = _day(row.start)
    value = None if row.sessions is None else float(row.sessions)
    return Point(_x(day), _label(day), value, None, None, row.sessions)


def _mean(day: date, row: Any | None) -> Point:
    if row is None:
        return Point(_x(day), _label(day), None, None, None, None)
    return Point(_x(day), _label(day), float(row.mean), row.low, row.high, int(row.n))


def _x(day: date) -> float:
    return float((day - EPOCH).days)


def _label(day: date) -> str:
    return day.isoformat()


def _day(value: Any) -> date:
    """SQLite's views have texts for dates."""
    return value if isinstance(value, date) else date.fromisoformat(value)
