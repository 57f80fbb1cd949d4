"""Views over the roll-ups: those that hide small cells, and the weeks of single counsellors."""

from collections.abc import Sequence
from typing import Final

from stream_app.analytics.views.columns import Column, Kind, View
from stream_app.analytics.views.dialects import Dialect
from stream_app.analytics.views.rollup_source import SCALE

_TEXT, _INTEGER, _NUMBER = Kind.TEXT, Kind.INTEGER, Kind.NUMBER
_BOOLEAN, _DATE = Kind.BOOLEAN, Kind.DATE
ALL: Final = "all"
NONE: Final = "not stated"
Z: Final = 1.959964
"""Quantile of a 95 % interval."""


def all_shown(dialect: Dialect) -> list[View]:
    """The views of finished reporting months, and that of counsellors' weeks."""
    day = [Column("date", _DATE, "c.start", "UTC")]
    week = [Column("week", _DATE, "c.start", "Monday of the week")]
    month = [Column("month", _DATE, "c.start", "First of the reporting month")]
    team = [_named("team", "c.kind IN ('week_all', 'month_all', 'month_domain', 'cohort')")]
    domain = [_named("domain", "c.kind IN ('month_all', 'month_team')")]
    cohort = [Column("cohort", _INTEGER, "c.cohort", "Year in which the counsellors joined")]
    groups: tuple[tuple[str, str, list[Column], tuple[str, ...]], ...] = (
        ("day", "a day, over all teams", day, ("day",)),
        ("week", "a week and team, or all teams", week + team, ("week", "week_all")),
        (
            "month",
            "a reporting month, team and domain, or all of either",
            month + team + domain,
            ("month", "month_team", "month_domain", "month_all"),
        ),
        (
            "cohort_month",
            "a reporting month, team or all teams, and cohort",
            month + team + cohort,
            ("cohort", "cohort_team"),
        ),
    )
    views = []
    for name, grain, keys, kinds in groups:
        views.append(_counts(dialect, name, grain, keys, kinds))
        views.append(_means(dialect, name, grain, keys, kinds))
    return [*views, _counsellor_week()]


def _named(name: str, total: str) -> Column:
    sql = f"CASE WHEN {total} THEN '{ALL}' WHEN c.{name} = '' THEN '{NONE}' ELSE c.{name} END"
    return Column(name, _TEXT, sql, f"`{ALL}`: all of them; `{NONE}`: of sessions without one")


def _counts(
    dialect: Dialect, name: str, grain: str, keys: list[Column], kinds: Sequence[str]
) -> View:
    counts = (
        ("sessions", "Ended sessions that began in the period"),
        ("turns", "Turns that were scored"),
        ("counsellor_turns", "Of them the counsellors'"),
        ("clients", "Different clients"),
        ("counsellors", "Different counsellors"),
    )
    return View(
        f"shown_{name}",
        f"{grain}, and bundle",
        (
            *keys,
            Column("bundle", _TEXT, "c.bundle", "Joins `dim_bundle`; compare within one bundle"),
            Column("hidden", _BOOLEAN, "c.hidden", "Whether the numbers are hidden, and null"),
            *(
                Column(count, _INTEGER, f"CASE WHEN NOT c.hidden THEN c.{count} END", meaning)
                for count, meaning in counts
            ),
        ),
        f"FROM rollup_cells AS c\nWHERE {_kinds(kinds)} AND c.until <= {dialect.today()}",
    )


def _means(
    dialect: Dialect, name: str, grain: str, keys: list[Column], kinds: Sequence[str]
) -> View:
    return View(
        f"shown_{name}_measure",
        f"{grain}, bundle and measure; hidden ones are left out",
        (
            *keys,
            Column("bundle", _TEXT, "c.bundle", "Joins `dim_bundle`; compare within one bundle"),
            *_measure("c"),
        ),
        "FROM rollup_means AS c\n"
        f"WHERE {_kinds(kinds)} AND NOT c.hidden AND c.until <= {dialect.today()}",
    )


def _counsellor_week() -> View:
    keys = ("kind", "start", "bundle", "team", "domain", "cohort", "counsellor")
    same = " AND ".join(f"m.{key} = c.{key}" for key in keys)
    return View(
        "fact_counsellor_week",
        "a counsellor, week, bundle and measure; nothing is hidden, for those who may see them",
        (
            Column("counsellor", _TEXT, "c.counsellor", "Pseudonym; joins `dim_counsellor`"),
            Column("joined_on", _DATE, "j.joined", "Date of the first ended session"),
            Column("week", _DATE, "c.start", "Monday of the week"),
            Column("bundle", _TEXT, "c.bundle", "Joins `dim_bundle`; compare within one bundle"),
            Column("sessions", _INTEGER, "c.sessions", "Ended sessions that began in the week"),
            Column("clients", _INTEGER, "c.clients", "Different clients"),
            *_measure("m", "sessions as independent"),
        ),
        f"FROM rollup_cells AS c\nJOIN rollup_means AS m ON {same}\n"
        "LEFT JOIN rollup_counsellors AS j ON j.speaker = c.counsellor\n"
        "WHERE c.kind = 'counsellor'",
    )


def _measure(table: str, of: str = "clustered by counsellor") -> tuple[Column, ...]:
    n, total = f"{table}.n", f"CAST({table}.total AS double precision)"
    mean = f"{total} / {n} / {SCALE}"
    squares = f"CAST({table}.squares AS double precision)"
    spread = f"({squares} - {total} * {total} / {n}) / ({n} - 1) / {n}"
    half = f"{Z} * sqrt(CASE WHEN {spread} > 0 THEN {spread} ELSE 0 END) / {SCALE}"

    def bound(sign: str) -> str:
        return f"CASE WHEN {n} > 1 THEN {mean} {sign} {half} END"

    return (
        Column("measure", _TEXT, f"{table}.measure", "As in `fact_session`; means of sessions"),
        Column("n", _INTEGER, n, "Sessions that have the measure"),
        Column("mean", _NUMBER, mean, "Mean over sessions, in the measure's unit"),
        Column("low", _NUMBER, bound("-"), f"95 % interval of the mean, {of}"),
        Column("high", _NUMBER, bound("+"), "Its upper end; null with one session"),
    )


def _kinds(kinds: Sequence[str]) -> str:
    return "c.kind IN (" + ", ".join(f"'{kind}'" for kind in kinds) + ")"
