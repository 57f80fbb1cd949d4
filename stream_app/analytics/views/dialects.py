"""SQL expressions that PostgreSQL and SQLite write differently."""

import json
from typing import Final, Protocol

from stream_app.contracts.plausible import EARLIEST
from stream_app.store.database import mechanism_means

FIRST_DATE: Final = EARLIEST.date().isoformat()
LAST_DATE: Final = "2049-12-31"


class Dialect(Protocol):
    """Expressions over columns; arguments are SQL, except names of JSON fields and literals."""

    name: str

    def number(self, column: str, *path: str | int) -> str:
        """A number inside a JSON column; null if it is not there."""

    def mechanism(self, column: str, name: str, part: str) -> str:
        """A number of a mechanism in a session's score; null if it is not there."""

    def text(self, column: str, *path: str | int) -> str:
        """A text inside a JSON column."""

    def length(self, column: str) -> str:
        """The length of a JSON list."""

    def contains(self, column: str, value: str) -> str:
        """Whether a JSON list of texts has this one."""

    def date(self, column: str) -> str:
        """The UTC date of a time."""

    def seconds(self, start: str, end: str) -> str:
        """The seconds from one time to another."""

    def dates(self) -> str:
        """A FROM item ``d(date)`` with every date of ``dim_date``."""

    def date_part(self, part: str, column: str) -> str:
        """``year``, ``month``, ``isoyear``, ``week``, ``weekday`` (Monday = 1) of a date."""

    def monday(self, column: str) -> str:
        """The Monday of a date's week."""

    def month_of_week(self, monday: str) -> str:
        """The first of the reporting month of a week: that of its Thursday."""

    def today(self) -> str:
        """The UTC date of now."""


class PostgreSQL:
    """PostgreSQL's."""

    name = "postgresql"

    def number(self, column: str, *path: str | int) -> str:
        """``->`` down the path; numbers of any kind become double precision."""
        return f"CAST({self.text(column, *path)} AS double precision)"

    def mechanism(self, column: str, name: str, part: str) -> str:
        """An element of ``store.mechanism_means``."""
        return f"{column}[{mechanism_means.place(name, part)}]"

    def text(self, column: str, *path: str | int) -> str:
        """``->`` down the path and ``->>`` at its end."""
        *way, last = path
        steps = "".join(f"->{_step(step)}" for step in way)
        return f"({column}{steps}->>{_step(last)})"

    def length(self, column: str) -> str:
        """Null if it is no list."""
        return f"CASE jsonb_typeof({column}) WHEN 'array' THEN jsonb_array_length({column}) END"

    def contains(self, column: str, value: str) -> str:
        """The operator ``?`` as a function, because drivers take it for a parameter."""
        return f"jsonb_exists({column}, {literal(value)})"

    def date(self, column: str) -> str:
        """Whatever the connection's zone is."""
        return f"CAST({column} AT TIME ZONE 'UTC' AS date)"

    def seconds(self, start: str, end: str) -> str:
        """The interval's epoch."""
        return f"CAST(EXTRACT(EPOCH FROM ({end} - {start})) AS double precision)"

    def dates(self) -> str:
        """A series."""
        series = (
            f"generate_series(timestamp '{FIRST_DATE}', timestamp '{LAST_DATE}', interval '1 day')"
        )
        return f"(SELECT CAST(day AS date) AS date FROM {series} AS s(day)) AS d"

    def date_part(self, part: str, column: str) -> str:
        """EXTRACT's names."""
        field = "isodow" if part == "weekday" else part
        return f"CAST(EXTRACT({field} FROM {column}) AS integer)"

    def monday(self, column: str) -> str:
        """PostgreSQL's weeks begin on Monday."""
        return f"CAST(date_trunc('week', CAST({column} AS timestamp)) AS date)"

    def month_of_week(self, monday: str) -> str:
        """Truncates the Thursday."""
        return f"CAST(date_trunc('month', {monday} + interval '3 days') AS date)"

    def today(self) -> str:
        """Whatever the connection's zone is."""
        return "CAST(now() AT TIME ZONE 'UTC' AS date)"


class SQLite:
    """SQLite's; dates are texts YYYY-MM-DD, times are texts in UTC."""

    name = "sqlite"

    def number(self, column: str, *path: str | int) -> str:
        """``json_extract`` keeps a number's kind."""
        return self.text(column, *path)

    def mechanism(self, column: str, name: str, part: str) -> str:
        """SQLite stores JSON."""
        return self.number(column, name, part)

    def text(self, column: str, *path: str | int) -> str:
        """A path of quoted names and places."""
        steps = "".join(
            f"[{step}]" if isinstance(step, int) else f".{json.dumps(step)}" for step in path
        )
        return f"json_extract({column}, {literal('$' + steps)})"

    def length(self, column: str) -> str:
        """Null if it is no list."""
        return f"CASE json_type({column}) WHEN 'array' THEN json_array_length({column}) END"

    def contains(self, column: str, value: str) -> str:
        """Searches the list."""
        return f"EXISTS (SELECT 1 FROM json_each({column}) AS j WHERE j.value = {literal(value)})"

    def date(self, column: str) -> str:
        """The first part of the text."""
        return f"date({column})"

    def seconds(self, start: str, end: str) -> str:
        """Seconds from Julian days, to the millisecond."""
        return f"round((julianday({end}) - julianday({start})) * 86400.0, 3)"

    def dates(self) -> str:
        """A recursive series."""
        return (
            f"(WITH RECURSIVE s(date) AS (SELECT '{FIRST_DATE}' UNION ALL "
            f"SELECT date(date, '+1 day') FROM s WHERE date < '{LAST_DATE}') "
            "SELECT date FROM s) AS d"
        )

    def date_part(self, part: str, column: str) -> str:
        """ISO parts by way of the week's Thursday, which lies in the week's year."""
        thursday = f"date({column}, '-3 days', 'weekday 4')"
        if part == "week":
            return f"((CAST(strftime('%j', {thursday}) AS integer) - 1) / 7 + 1)"
        if part == "isoyear":
            return f"CAST(strftime('%Y', {thursday}) AS integer)"
        if part == "weekday":
            return f"((CAST(strftime('%w', {column}) AS integer) + 6) % 7 + 1)"
        letter = {"year": "%Y", "month": "%m"}[part]
        return f"CAST(strftime('{letter}', {column}) AS integer)"

    def monday(self, column: str) -> str:
        """Three days before the week's Thursday."""
        return f"date({column}, '-3 days', 'weekday 4', '-3 days')"

    def month_of_week(self, monday: str) -> str:
        """Truncates the Thursday."""
        return f"date({monday}, '+3 days', 'start of month')"

    def today(self) -> str:
        """SQLite's clock is UTC's."""
        return "date('now')"


DIALECTS: Final[dict[str, Dialect]] = {"postgresql": PostgreSQL(), "sqlite": SQLite()}


def literal(text: str) -> str:
    """A text as an SQL literal.

    >>> literal("o'clock")
    "'o''clock'"
    """
    return "'" + text.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _step(step: str | int) -> str:
    return str(step) if isinstance(step, int) else literal(step)
