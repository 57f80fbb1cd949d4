"""What the roll-ups have to take up: sessions that ended or changed, months that lost some.

A mark is written in the transaction of the change. An erased session leaves only its month behind,
and takes along at once what the roll-ups hold of its counsellors.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.contracts.events import Role
from stream_app.store import tables

OF_A_COUNSELLOR = "counsellor"
"""The kind of the cells that are about one counsellor."""


@contextmanager
def erasing(connection: Connection, session_ids: Sequence[str]) -> Iterator[None]:
    """Surrounds the deletion of sessions: marks their months, forgets their counsellors' cells."""
    rolled, speakers = tables.rollup_sessions, tables.session_speakers
    query = sa.select(rolled.c.month, rolled.c.week).distinct()
    periods = connection.execute(query.where(rolled.c.session_id.in_(session_ids))).all()
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
    if not periods:
        return
    marks = [{"month": month} for month in sorted({period.month for period in periods})]
    connection.execute(sa.insert(tables.rollup_marks), marks)
    for table in (tables.rollup_cells, tables.rollup_means):
        connection.execute(
            sa.delete(table).where(
                table.c.kind == OF_A_COUNSELLOR,
                table.c.start.in_({period.week for period in periods}),
                table.c.counsellor.in_(counsellors),
            )
        )
    joined = tables.rollup_counsellors
    connection.execute(
        sa.delete(joined).where(
            joined.c.speaker.in_(counsellors),
            joined.c.speaker.not_in(people.where(speakers.c.speaker.in_(counsellors))),
        )
    )
