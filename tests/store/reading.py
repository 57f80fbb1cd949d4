"""What is in a database."""

from typing import Any

import sqlalchemy as sa

from stream_app.store import tables
from stream_app.store.repository import Store


def rows(store: Store, table: sa.Table) -> list[dict[str, Any]]:
    """All rows of a table, in the order of its key."""
    with store.engine.connect() as connection:
        query = sa.select(table).order_by(*table.primary_key)
        return [dict(row) for row in connection.execute(query).mappings()]


def contents(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Everything."""
    return {table.name: rows(store, table) for table in tables.metadata.sorted_tables}


def dump(store: Store) -> str:
    """Everything as one text, bytes included."""
    return repr(contents(store))
