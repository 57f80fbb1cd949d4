"""Consent records of a session."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy import Connection

from stream_app.contracts.events import ConsentPurpose, ConsentStatus, Role
from stream_app.store.database.tables import consents, session_speakers, sessions
from stream_app.store.sessions.scope import ALL_SESSIONS, SCOPES, Scope
from stream_app.store.stream.repository import Store


@dataclass(frozen=True, slots=True)
class ConsentRead:
    """One decision about the analysis of a session."""

    status: ConsentStatus
    occurred_at: datetime
    version: Annotated[str | None, Field(description="Version of the wording")]
    source: Annotated[str | None, Field(description="Where it was recorded; `turn`: in a turn")]
    speaker: Annotated[
        str | None, Field(description="Pseudonym of the person, if named and consent was given")
    ]
    seq: Annotated[int | None, Field(description="The turn that stated it")]
    effective: Annotated[
        bool,
        Field(
            description="False: consent had been withdrawn, and this record's version of the "
            "wording is not newer"
        ),
    ]
    purposes: Annotated[
        list[ConsentPurpose],
        Field(description="What the person also agreed to"),
    ]


@dataclass(frozen=True, slots=True)
class SessionConsent:
    """Consent of a session; ``hidden``: its text and scores cannot be read."""

    session_id: Annotated[str, Field(description="As in its events")]
    consent: Annotated[bool | None, Field(description="The latest statement; null: none")]
    withdrawn: Annotated[bool, Field(description="Withdrawn; a newer wording may end it")]
    hidden: Annotated[bool, Field(description="Text and scores cannot be read")]
    records: Annotated[list[ConsentRead], Field(description="Oldest first")]

    @property
    def deciding(self) -> ConsentRead | None:
        """The latest record that had an effect."""
        return next((each for each in reversed(self.records) if each.effective), None)


@dataclass(frozen=True, slots=True)
class FoundSessions:
    """Sessions with their consent; ``more``: there are others, which were not read."""

    sessions: list[SessionConsent]
    more: bool


def of_session(store: Store, scope: Scope, session_id: str) -> SessionConsent | None:
    """A session's consent, also if the session is hidden; None if it is not in the scope."""
    found = _read_sessions(store, scope, [session_id])
    return found[0] if found else None


def look_up(store: Store, name: str, limit: int) -> FoundSessions:
    """The session with this id, or those of a client with this pseudonym or id in events.

    A session of a counsellor is not theirs to withdraw, so counsellors have none.
    """
    speakers = session_speakers
    of_client = (
        sa.select(speakers.c.session_id)
        .where(
            speakers.c.speaker.in_([name.lower(), store.privacy.pseudonym(name)]),
            speakers.c.role == Role.CLIENT.value,
        )
        .distinct()
    )
    of_name = sessions.c.session_id.in_(of_client) | (sessions.c.session_id == name)
    query = sa.select(sessions.c.session_id).where(of_name).order_by(sessions.c.session_id)
    with store.reading() as connection:
        ids = list(connection.scalars(query.limit(limit + 1)))
    found = _read_sessions(store, ALL_SESSIONS, ids[:limit])
    return FoundSessions(found, len(ids) > limit)


def _read_sessions(store: Store, scope: Scope, session_ids: Sequence[str]) -> list[SessionConsent]:
    with store.reading() as connection:
        rows = connection.execute(_of_sessions(scope), {"session_ids": session_ids}).all()
    return [_session(list(own)) for _, own in groupby(rows, attrgetter("session_id"))]


def _session(rows: Sequence[sa.Row[Any]]) -> SessionConsent:
    first = rows[0]
    return SessionConsent(
        first.session_id,
        first.consent,
        first.withdrawn,
        first.hidden,
        [_read(row) for row in rows if row.status is not None],
    )


@lru_cache(maxsize=SCOPES)
def _of_sessions(scope: Scope) -> sa.Select[Any]:
    """A row for each record, and one without a record for a session that has none."""
    own = Scope(scope.team, scope.speaker, with_hidden=True)
    session = (sessions.c.session_id, sessions.c.consent, sessions.c.withdrawn, sessions.c.hidden)
    return (
        sa.select(*session, *(consents.c[field] for field in ConsentRead.__slots__))
        .outerjoin_from(sessions, consents, consents.c.session_id == sessions.c.session_id)
        .where(
            sessions.c.session_id.in_(sa.bindparam("session_ids", expanding=True)),
            *own.conditions(sessions.c.session_id, sessions),
        )
        .order_by(
            sessions.c.session_id,
            consents.c.occurred_at,
            consents.c.stored_at,
            consents.c.consent_id,
        )
    )


def _read(row: sa.Row[Any]) -> ConsentRead:
    given = {name: getattr(row, name) for name in ConsentRead.__slots__}
    purposes = [ConsentPurpose(name) for name in row.purposes or ()]
    return ConsentRead(**{**given, "status": ConsentStatus(row.status), "purposes": purposes})


def permitting(store: Store, purpose: ConsentPurpose, session_id: str | None = None) -> list[str]:
    """Ids of the sessions (or only this one) whose consent includes a purpose, in order.

    The session has consent that was not withdrawn, it is not hidden, and its latest record that had
    an effect states the purpose: a later record without the purpose ends it.
    """
    with store.reading() as connection:
        return permitted(connection, purpose, session_id)


def permitted(
    connection: Connection, purpose: ConsentPurpose, session_id: str | None = None
) -> list[str]:
    """As ``permitting``, in a transaction."""
    record = consents.alias("record")
    latest = (
        sa.select(record.c.consent_id)
        .where(record.c.session_id == sessions.c.session_id, record.c.effective)
        .order_by(
            record.c.occurred_at.desc(), record.c.stored_at.desc(), record.c.consent_id.desc()
        )
        .limit(1)
        .scalar_subquery()
    )
    query = (
        sa.select(sessions.c.session_id, consents.c.purposes)
        .select_from(sessions.join(consents, consents.c.consent_id == latest))
        .where(
            sessions.c.consent,
            ~sessions.c.withdrawn,
            ~sessions.c.hidden,
            consents.c.status == ConsentStatus.GIVEN.value,
            consents.c.purposes.is_not(None),
        )
        .order_by(sessions.c.session_id)
    )
    if session_id is not None:
        query = query.where(sessions.c.session_id == session_id)
    found = connection.execute(query).all()
    return [name for name, purposes in found if purpose.value in purposes]
