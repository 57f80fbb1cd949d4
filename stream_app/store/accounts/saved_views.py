"""Saved views: named filters of the past-sessions page, each person's own.

The counsellor of a filter has a column of its own, so that the rotation of pseudonyms and erasure
reach it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from stream_app.errors import RapportError
from stream_app.store.database.tables import saved_views
from stream_app.store.stream.repository import Store

MOST: Final = 50
"""Most views of a person."""
MAX_NAME: Final = 100
MAX_QUERY: Final = 2000


class TooManyViews(RapportError):
    """The person has as many views as are stored."""


@dataclass(frozen=True, slots=True)
class SavedView:
    """``query``: the filter as a query string; ``counsellor``: a pseudonym, if one is chosen."""

    name: str
    query: str
    counsellor: str | None = None


def find(store: Store, person: str) -> list[SavedView]:
    """A person's views by name."""
    table = saved_views
    query = (
        sa.select(table.c.name, table.c.query, table.c.counsellor)
        .where(table.c.person == person)
        .order_by(table.c.name)
    )
    with store.reading() as connection:
        return [SavedView(**row) for row in connection.execute(query).mappings()]


def save(store: Store, person: str, view: SavedView) -> None:
    """Store a view, its name redacted like turn text; one of the same name is replaced.

    Raises:
        TooManyViews: there is no room for another.
    """
    table = saved_views
    name = store.privacy.redacted(view.name)
    others = sa.select(sa.func.count()).where(table.c.person == person, table.c.name != name)
    with store.transaction() as connection:
        if (connection.scalar(others.select_from(table)) or 0) >= MOST:
            raise TooManyViews(f"you have {MOST} saved views; delete one first")
        row = {
            "person": person,
            "name": name,
            "query": view.query,
            "counsellor": view.counsellor,
            "at": datetime.now(UTC),
        }
        store.upsert(connection, table, [row], keep=False)


def delete(store: Store, person: str, name: str) -> None:
    """Delete a view, if there is one of this name."""
    table = saved_views
    with store.transaction() as connection:
        connection.execute(sa.delete(table).where(table.c.person == person, table.c.name == name))
