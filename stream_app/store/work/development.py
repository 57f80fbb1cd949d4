"""A counsellor's sessions with their measures, for the person's own curves over months."""

from dataclasses import dataclass
from datetime import date

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.store.database.tables import ROLLED_UP, rollup_sessions, session_speakers
from stream_app.store.sessions.scope import Scope
from stream_app.store.stream.repository import Store


@dataclass(frozen=True, slots=True)
class MeasuredSession:
    """An ended session; ``measures``: in the roll-ups' whole numbers, without unknown ones."""

    day: date
    week: date
    month: date
    bundle: str
    team: str
    measures: dict[str, int]


def of_counsellor(
    store: Store, scope: Scope, speaker: str, since: date, until: date
) -> list[MeasuredSession]:
    """Sessions in ``scope`` in which this counsellor spoke, from ``since`` to before ``until``.

    Archived sessions are among them.
    """
    rolled, who = rollup_sessions.c, session_speakers.c
    query = (
        sa.select(
            *(rolled[name] for name in ("day", "week", "month", "bundle", "team", *ROLLED_UP)),
        )
        .join(session_speakers, who.session_id == rolled.session_id)
        .where(
            who.speaker == speaker,
            who.role == Role.COUNSELLOR.value,
            rolled.day >= since,
            rolled.day < until,
            *scope.conditions(rolled.session_id, with_archived=True),
        )
        .order_by(rolled.day, rolled.session_id)
    )
    with store.reading() as connection:
        return [
            MeasuredSession(
                row["day"],
                row["week"],
                row["month"],
                row["bundle"],
                row["team"],
                {name: row[name] for name in ROLLED_UP if row[name] is not None},
            )
            for row in connection.execute(query).mappings()
        ]
