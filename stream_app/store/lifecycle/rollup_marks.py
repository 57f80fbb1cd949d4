"""Marks for the roll-ups: sessions that ended or changed, months that lost some.

A mark is written in the transaction of the change. An erased session leaves only its month behind,
and takes along at once what the roll-ups hold of its counsellors. Tables are changed in the order
in which the roll-ups are computed, so that the two do not wait for each other.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.contracts.events import Role
from stream_app.contracts.scores import SessionStatus
from stream_app.store.database import tables
from stream_app.store.lifecycle.reporting_months import monday_of, month_of

OF_A_COUNSELLOR = "counsellor"
"""The kind of the cells that are about one counsellor."""


@contextmanager
def erasing(connection: Connection, session_ids: Sequence[str]) -> Iterator[None]:
    """Surrounds the deletion of sessions: marks their months, forgets their counsellors' cells.

    A session that has ended may be rolled up at this moment by a transaction that cannot see its
    deletion. The mark of its month lets the next update find what is left of it.
    """
    rolled, speakers = tables.rollup_sessions, tables.session_speakers
    scores = tables.session_scores
    query = sa.select(rolled.c.month, rolled.c.week).distinct()
    periods = connection.execute(query.where(rolled.c.session_id.in_(session_ids))).all()
    months = {period.month for period in periods}
    began = sa.select(scores.c.started_at).where(
        scores.c.session_id.in_(session_ids),
        scores.c.status != SessionStatus.OPEN.value,
        scores.c.started_at.is_not(None),
    )
    months |= {month_of(monday_of(at.date())) for at in connection.scalars(began)}
    people = sa.select(speakers.c.speaker).distinct()
    counsellors = list(
        connection.scalars(
            people.where(
                speakers.c.session_id.in_(session_ids),
                speakers.c.role == Role.COUNSELLOR.value,
            )
        )
    )
    yield
    if periods:
        _forget(connection, counsellors, {period.week for period in periods})
    if months:
        marks = [{"month": month} for month in sorted(months)]
        connection.execute(sa.insert(tables.rollup_marks), marks)


def _forget(connection: Connection, counsellors: Sequence[str], weeks: set[date]) -> None:
    """Delete the counsellors' cells of these weeks, and what is known of those who are gone."""
    speakers = tables.session_speakers
    joined = tables.rollup_counsellors
    remaining = sa.select(speakers.c.speaker).where(speakers.c.speaker.in_(counsellors))
    gone = joined.c.speaker.in_(counsellors) & joined.c.speaker.not_in(remaining)
    connection.execute(sa.delete(joined).where(gone))
    for table in (tables.rollup_cells, tables.rollup_means):
        connection.execute(
            sa.delete(table).where(
                table.c.kind == OF_A_COUNSELLOR,
                table.c.start.in_(weeks),
                table.c.counsellor.in_(counsellors),
            )
        )
