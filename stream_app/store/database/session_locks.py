"""Locks the rows of sessions that are deleted, in the order in which workers write them."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.store.database.tables import session_states, sessions


def lock(connection: Connection, session_ids: Sequence[str]) -> None:
    """Wait for workers that write these sessions; later ones wait for this transaction's end.

    A worker writes a session's state first. In the opposite order, each would wait for the other.
    """
    for table in (session_states, sessions):
        rows = sa.select(table.c.session_id).where(table.c.session_id.in_(session_ids))
        in_order = rows.order_by(*table.primary_key)
        connection.execute(in_order.with_for_update()).all()
