"""Reads the contents of a database."""

from typing import Any

import sqlalchemy as sa

from stream_app.sealing.envelope import unseal
from stream_app.store.database import tables
from stream_app.store.keys.session_keys import place, unseal_or_none
from stream_app.store.stream.repository import Store

SEALED = [
    (tables.turns.c.text, ["session_id", "seq"]),
    (tables.sessions.c.end_reason, ["session_id"]),
    (tables.alert_actions.c.note, ["session_id", "action_id"]),
    (tables.interventions.c.text, ["session_id", "intervention_id"]),
    (tables.disputes.c.note, ["session_id", "dispute_id"]),
    (tables.disputes.c.answer, ["session_id", "dispute_id"]),
    (tables.rating_comments.c.comment, ["session_id", "comment_id"]),
    (tables.review_comments.c.comment, ["session_id", "comment_id"]),
    (tables.coaching_goals.c.goal, ["goal_id"]),
    (tables.mutes.c.reason, ["mute_id"]),
    (tables.session_states.c.state, ["session_id", "bundle"]),
    (tables.window_turns.c.turn, ["session_id", "bundle", "slot"]),
]
"""Columns that are encrypted, and what their place is made of."""


def rows(store: Store, table: sa.Table) -> list[dict[str, Any]]:
    """All rows of a table, ordered by its key, decrypted."""
    found = stored_rows(store, table)
    columns = [(column, names) for column, names in SEALED if column.table is table]
    if not found or not columns:
        return found
    with store.reading() as connection:
        owners = list(connection.scalars(sa.select(tables.session_keys.c.session_id)))
        keys = store.keys.load(connection, owners)
    for row in found:
        for column, names in columns:
            key = keys.get(row[names[0]])
            where = place(column, *(row[name] for name in names))
            value = row[column.name]
            if isinstance(value, bytes):
                row[column.name] = unseal(key, value, where)
            else:
                row[column.name] = unseal_or_none(key, value, where)
    return found


def stored_rows(store: Store, table: sa.Table) -> list[dict[str, Any]]:
    """All rows of a table, ordered by its key, as they are stored."""
    with store.engine.connect() as connection:
        query = sa.select(table).order_by(*table.primary_key)
        return [dict(row) for row in connection.execute(query).mappings()]


def contents(store: Store) -> dict[str, list[dict[str, Any]]]:
    """All rows by table."""
    return {table.name: rows(store, table) for table in tables.metadata.sorted_tables}


def dump(store: Store) -> str:
    """All values of the database as one text, decrypted, including bytes."""
    return repr(contents(store))
