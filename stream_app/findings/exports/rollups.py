"""Exports the roll-ups that hide small cells: the reporting views ``shown_*``."""

from collections.abc import Iterator, Sequence
from datetime import date
from enum import Enum
from typing import Any, Final

import sqlalchemy as sa

from stream_app.analytics.views import schema, shown
from stream_app.analytics.views.columns import Kind, View
from stream_app.analytics.views.dialects import DIALECTS
from stream_app.errors import RapportError
from stream_app.findings.exports.columns import Column, Row
from stream_app.store.accounts.people import Person
from stream_app.store.database.pages import Key, rows_after
from stream_app.store.stream.repository import Store

ROWS_PER_PAGE: Final = 2000
_TEAM: Final = "team"
_MEASURE: Final = "measure"
_PREFIX: Final = "shown_"


class RollUp(Enum):
    """Numbers of sessions and people, or means of measures, by period."""

    DAY = "day"
    DAY_MEASURE = "day_measure"
    WEEK = "week"
    WEEK_MEASURE = "week_measure"
    MONTH = "month"
    MONTH_MEASURE = "month_measure"
    COHORT_MONTH = "cohort_month"
    COHORT_MONTH_MEASURE = "cohort_month_measure"


class ViewsMissing(RapportError):
    """The database does not have the reporting views."""


class AllTeamsOnly(RapportError):
    """The roll-up is over all teams, and the person reads one."""


def rollup_columns(store: Store, chosen: RollUp) -> list[Column]:
    """The columns of a roll-up, as docs/analytics.md describes them."""
    return [Column(each.name, each.kind, each.meaning) for each in _view(store, chosen).columns]


def rollup_rows(store: Store, person: Person, chosen: RollUp) -> Iterator[Sequence[Row]]:
    """Pages of a roll-up; a supervisor of a team gets its rows only.

    Raises:
        ViewsMissing: `rapport db views` has not created them.
        AllTeamsOnly: the person has a team, and the roll-up none.
        OutsideTeam: the person is a supervisor without a team.
    """
    view = _view(store, chosen)
    names = [column.name for column in view.columns]
    team = person.chosen_team(None)
    if team is not None and _TEAM not in names:
        raise AllTeamsOnly(f"{chosen.value} is over all teams; choose a roll-up by team")
    if view.name not in schema.existing_views(store):
        raise ViewsMissing("the reporting views are missing: run `rapport db views`")
    return _pages(store, team, view)


def _pages(store: Store, team: str | None, view: View) -> Iterator[Sequence[Row]]:
    table = sa.table(view.name, *(sa.column(column.name) for column in view.columns))
    names = [column.name for column in view.columns]
    last_key = names.index(_MEASURE) if _MEASURE in names else names.index("bundle")
    keys: list[tuple[Key, bool]] = [(table.c[name], False) for name in names[: last_key + 1]]
    query = sa.select(table).order_by(*(key for key, _ in keys)).limit(ROWS_PER_PAGE)
    if team is not None:
        query = query.where(table.c[_TEAM] == team)
    after: list[Any] | None = None
    while True:
        following = query if after is None else query.where(rows_after(keys, after))
        with store.reading() as connection:
            found = connection.execute(following).all()
        yield [_row(view, values) for values in found]
        if len(found) < ROWS_PER_PAGE:
            return
        after = list(found[-1][: last_key + 1])


def _row(view: View, values: Sequence[Any]) -> Row:
    """SQLite has texts for dates and numbers for booleans."""
    row: Row = {}
    for column, value in zip(view.columns, values, strict=True):
        row[column.name] = value
        if column.kind is Kind.DATE and isinstance(value, str):
            row[column.name] = date.fromisoformat(value)
        elif column.kind is Kind.BOOLEAN and value is not None:
            row[column.name] = bool(value)
    return row


def _view(store: Store, chosen: RollUp) -> View:
    views = shown.all_shown(DIALECTS[store.engine.dialect.name])
    return next(view for view in views if view.name == f"{_PREFIX}{chosen.value}")
