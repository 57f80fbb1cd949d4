"""Access scopes: which sessions a person may read."""

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.store.database.tables import (
    archived_sessions,
    session_assignments,
    session_speakers,
    sessions,
)

SCOPES: Final = 1000
"""Prepared statements are kept for so many access scopes."""


@dataclass(frozen=True, slots=True)
class Scope:
    """An access scope: conditions combined with AND; without any, all sessions.

    ``team``: sessions of this team. ``speaker``: sessions whose first counsellor has this
    pseudonym, or that a supervisor has assigned to it. ``with_hidden``: also sessions that are
    hidden because consent was withdrawn.
    """

    team: str | None = None
    speaker: str | None = None
    with_hidden: bool = False

    def conditions(
        self,
        session_id: sa.ColumnElement[str],
        joined: sa.Table | None = None,
        *,
        with_archived: bool = False,
    ) -> list[sa.ColumnElement[bool]]:
        """SQL conditions for a query with this column of session ids.

        ``joined``: the table ``sessions``, if the query has joined it: its row is then read once.
        ``with_archived``: also archived sessions, whose team only their index knows.
        """
        found: list[sa.ColumnElement[bool]] = []
        if self.team is not None and joined is not None:
            found.append(joined.c.team == self.team)
        elif self.team is not None:
            tables = (sessions, archived_sessions) if with_archived else (sessions,)
            of_team = (sa.select(t.c.session_id).where(t.c.team == self.team) for t in tables)
            found.append(session_id.in_(sa.union_all(*of_team)))
        if self.speaker is not None:
            of_speaker = sa.select(session_speakers.c.session_id).where(
                session_speakers.c.speaker == self.speaker,
                session_speakers.c.role == Role.COUNSELLOR.value,
                session_speakers.c.reads,
            )
            assigned = sa.select(session_assignments.c.session_id).where(
                session_assignments.c.speaker == self.speaker
            )
            found.append(session_id.in_(of_speaker.union_all(assigned)))
        if not self.with_hidden and joined is not None:
            found.append(~joined.c.hidden)
        elif not self.with_hidden:
            hidden = sessions.alias("hidden_sessions")
            found.append(~sa.exists().where(hidden.c.session_id == session_id, hidden.c.hidden))
        return found


ALL_SESSIONS = Scope()
NO_SESSIONS = Scope(team="", speaker="")
"""No event can have an empty team or speaker."""
