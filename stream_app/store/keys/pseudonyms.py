"""Replaces all stored pseudonyms when their key is rotated."""

from collections.abc import Callable
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.store.database.audit_subjects import COUNSELLOR, ERASED, SESSION
from stream_app.store.database.tables import (
    audit_subjects,
    baselines,
    coaching_goals,
    consents,
    erasure_receipts,
    erasures,
    ingest_keys,
    people,
    rollup_cells,
    rollup_counsellors,
    rollup_means,
    saved_views,
    session_assignments,
    session_speakers,
    sign_in_attempts,
    turns,
)

_COLUMNS: Final = (
    turns.c.speaker,
    session_speakers.c.speaker,
    session_assignments.c.speaker,
    consents.c.speaker,
    people.c.speaker,
    saved_views.c.counsellor,
    coaching_goals.c.counsellor,
    rollup_counsellors.c.speaker,
    rollup_cells.c.counsellor,
    rollup_means.c.counsellor,
    baselines.c.key,
    erasures.c.digest,
    erasure_receipts.c.digest,
)
_IN_AUDIT: Final = ((COUNSELLOR, ""), (SESSION, ERASED))
"""Kinds of subjects of the audit trail with pseudonyms, and the pseudonyms' prefixes."""
_AT_A_TIME: Final = 1000


def replace(connection: Connection, new: Callable[[str], str]) -> int:
    """Replace speakers' pseudonyms and erased sessions' digests; return their number.

    Counts of refused sign-ins are reset.
    """
    mapping = sa.Table(
        "new_pseudonyms",
        sa.MetaData(),
        sa.Column("old", sa.String(200), primary_key=True),
        sa.Column("new", sa.String(64), nullable=False),
        prefixes=["TEMPORARY"],
    )
    mapping.create(connection)
    found = sorted(_stored(connection))
    for first in range(0, len(found), _AT_A_TIME):
        some = found[first : first + _AT_A_TIME]
        connection.execute(sa.insert(mapping), [{"old": old, "new": new(old)} for old in some])
    for column in _COLUMNS:
        fresh = sa.select(mapping.c.new).where(mapping.c.old == column).scalar_subquery()
        update = sa.update(column.table).where(column.in_(sa.select(mapping.c.old)))
        if column is baselines.c.key:
            update = update.where(baselines.c.scope == "counsellor")
        connection.execute(update.values({column.name: fresh}))
    column = audit_subjects.c.value
    for kind, prefix in _IN_AUDIT:  # without their salts: the trail has commitments to old ones
        named = sa.literal(prefix) + mapping.c.old == column
        fresh = sa.select(sa.literal(prefix) + mapping.c.new).where(named).scalar_subquery()
        known = column.in_(sa.select(sa.literal(prefix) + mapping.c.old))
        update = sa.update(audit_subjects).where(audit_subjects.c.kind == kind, known)
        connection.execute(update.values(value=fresh, salt=None))
    connection.execute(sa.delete(sign_in_attempts))
    connection.execute(sa.delete(ingest_keys))
    mapping.drop(connection)
    return len(found)


def _stored(connection: Connection) -> set[str]:
    found: set[str] = set()
    for column in _COLUMNS:
        query = sa.select(column).distinct().where(column.is_not(None), column != "")
        if column is baselines.c.key:
            query = query.where(baselines.c.scope == "counsellor")
        found.update(connection.scalars(query))
    return found
