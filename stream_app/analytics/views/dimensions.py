"""The dimension views: counsellors, teams, bundles, heads, dates."""

from collections.abc import Iterable, Mapping
from typing import Any

from stream_app.analytics.views.columns import Column, Kind, View
from stream_app.analytics.views.dialects import FIRST_DATE, LAST_DATE, Dialect
from stream_app.analytics.views.heads import Field, described

_TEXT, _INTEGER, _DATE, _TIME = Kind.TEXT, Kind.INTEGER, Kind.DATE, Kind.TIME

_SESSIONS = (
    "(SELECT y.session_id, y.team, y.started_at FROM sessions AS y WHERE NOT EXISTS "
    "(SELECT 1 FROM archived_sessions AS a WHERE a.session_id = y.session_id) "
    "UNION ALL SELECT a.session_id, a.team, a.started_at FROM archived_sessions AS a)"
)
"""Stored sessions: those of the database and the archived ones."""


def dim_counsellor(dialect: Dialect) -> View:
    """Counsellors by pseudonym."""
    joined = "g.joined_at"
    return View(
        "dim_counsellor",
        "a counsellor (pseudonym) of a stored session",
        (
            Column("counsellor", _TEXT, "g.speaker", "Pseudonym"),
            Column("joined_at", _TIME, joined, "Start of the earliest stored session"),
            Column("joined_on", _DATE, dialect.date(joined), "Its UTC date"),
            Column(
                "cohort",
                _INTEGER,
                dialect.date_part("year", dialect.date(joined)),
                "Year of joining",
            ),
            Column("last_started_at", _TIME, "g.last_started_at", "Start of the latest session"),
            Column("sessions", _INTEGER, "g.sessions", "Stored sessions"),
            Column(
                "team",
                _TEXT,
                "(SELECT x.team FROM session_speakers AS w "
                f"JOIN {_SESSIONS} AS x ON x.session_id = w.session_id "
                "WHERE w.speaker = g.speaker AND w.role = 'counsellor' "
                "AND x.started_at = g.last_started_at ORDER BY x.session_id LIMIT 1)",
                "Team of the latest session",
            ),
        ),
        "FROM (\n"
        "  SELECT w.speaker, min(x.started_at) AS joined_at, max(x.started_at) AS last_started_at,"
        "\n    count(*) AS sessions\n"
        f"  FROM session_speakers AS w JOIN {_SESSIONS} AS x ON x.session_id = w.session_id\n"
        "  WHERE w.role = 'counsellor' AND x.started_at IS NOT NULL GROUP BY w.speaker\n"
        ") AS g",
    )


def dim_team(dialect: Dialect) -> View:
    """Teams as the events name them."""
    return View(
        "dim_team",
        "a team",
        (
            Column("team", _TEXT, "x.team", "As the events carry it"),
            Column("first_on", _DATE, dialect.date("min(x.started_at)"), "First stored session"),
            Column("last_on", _DATE, dialect.date("max(x.started_at)"), "Latest session's start"),
            Column("sessions", _INTEGER, "count(*)", "Stored sessions"),
        ),
        f"FROM {_SESSIONS} AS x WHERE x.team IS NOT NULL GROUP BY x.team",
    )


def dim_bundle(dialect: Dialect) -> View:
    """Bundles that have scored here."""

    def said(name: str) -> str:
        return dialect.text("b.manifest", name)

    return View(
        "dim_bundle",
        "a model bundle that has scored here",
        (
            Column("bundle", _TEXT, "b.bundle", "Name, version and profile"),
            Column("name", _TEXT, said("name"), "Its name"),
            Column("version", _TEXT, said("version"), "Its version"),
            Column("profile", _TEXT, said("profile"), "Number format of its weights"),
            Column("digest", _TEXT, "b.digest", "SHA-256 of its files"),
            Column("first_used_at", _TIME, "b.first_used_at", "When a worker first started it"),
        ),
        "FROM bundles AS b",
    )


def dim_head(fields: Iterable[Field], bundles: Mapping[str, Mapping[str, Any]]) -> View:
    """Which column of ``fact_turn`` holds what of which bundle."""
    names = ("bundle", "head", "dimension", "kind", "label", "column_name", "meaning")
    meanings = (
        "Joins `dim_bundle`",
        "The head's name",
        "expressed, perceived or client; never mix them",
        "level, categorical or binary",
        "The label of the column's probability; null: about the whole head",
        "Column of `fact_turn`",
        "Unit and meaning of that column",
    )
    return View(
        "dim_head",
        "a column of `fact_turn` that a bundle fills",
        tuple(
            Column(name, _TEXT, f"h.{name}", meaning)
            for name, meaning in zip(names, meanings, strict=True)
        ),
        "FROM h",
        f"WITH h ({', '.join(names)}) AS ({described(fields, bundles)})",
    )


def dim_date(dialect: Dialect) -> View:
    """The calendar."""
    parts = (
        ("year", "Calendar year"),
        ("month", "1-12"),
        ("isoyear", "Year of the ISO week"),
        ("week", "ISO week, 1-53"),
        ("weekday", "1 Monday - 7 Sunday"),
    )
    month = dialect.date_part("month", "d.date")
    return View(
        "dim_date",
        f"a date from {FIRST_DATE} to {LAST_DATE}",
        (
            Column("date", _DATE, "d.date", "UTC"),
            Column("monday", _DATE, dialect.monday("d.date"), "First day of the date's week"),
            *(
                Column(name, _INTEGER, dialect.date_part(name, "d.date"), meaning)
                for name, meaning in parts
            ),
            Column("quarter", _INTEGER, f"(({month} + 2) / 3)", "1-4"),
        ),
        f"FROM {dialect.dates()}",
    )
