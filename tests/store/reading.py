"""Reads the contents of a database."""

from typing import Any

import sqlalchemy as sa

from stream_app.store import tables
from stream_app.store.repository import Store


def rows(store: Store, table: sa.Table) -> list[dict[str, Any]]:
    """All rows of a table, ordered by its key."""
    with store.engine.connect() as connection:
        query = sa.select(table).order_by(*table.primary_key)
        return [dict(row) for row in connection.execute(query).mappings()]


def contents(store: Store) -> dict[str, list[dict[str, Any]]]:
    """All rows by table."""
    return {table.name: rows(store, table) for table in tables.metadata.sorted_tables}


def dump(store: Store) -> str:
    """All values of the database as one text, including bytes."""
    return repr(contents(store))
