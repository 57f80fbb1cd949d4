"""Questionnaires of a session's client, over the sessions that a person may read."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.contracts.questionnaires import Instrument, total
from stream_app.store.database.tables import questionnaires, session_speakers
from stream_app.store.sessions.scope import Scope
from stream_app.store.stream.repository import Store


@dataclass(frozen=True, slots=True)
class Filled:
    """One questionnaire that was filled in."""

    session_id: str
    instrument: Instrument
    occurred_at: datetime
    items: tuple[float | None, ...]

    @property
    def total(self) -> float:
        """The sum of the items."""
        return total(self.items)


def of_client(store: Store, scope: Scope, session_id: str) -> list[Filled]:
    """Those of the session, and of all sessions with the same client; the oldest first.

    A session with several clients has only its own, because nothing says who filled them in.
    """
    filled, speaker = questionnaires.c, session_speakers
    clients = sa.select(speaker.c.speaker).where(
        speaker.c.session_id == session_id, speaker.c.role == Role.CLIENT.value
    )
    with store.reading() as connection:
        people = connection.scalars(clients).all()
        chosen: sa.ColumnElement[bool] = filled.session_id == session_id
        if len(people) == 1:
            same = speaker.alias("same")
            others = sa.select(same.c.session_id).where(
                same.c.role == Role.CLIENT.value, same.c.speaker == people[0]
            )
            chosen |= filled.session_id.in_(others)
        query = (
            sa.select(questionnaires)
            .where(chosen, *scope.conditions(filled.session_id))
            .order_by(filled.occurred_at, filled.questionnaire_id)
        )
        return [_filled(row) for row in connection.execute(query).mappings()]


def _filled(row: sa.RowMapping) -> Filled:
    items: list[Any] = row["items"]
    return Filled(
        row["session_id"], Instrument(row["instrument"]), row["occurred_at"], tuple(items)
    )
