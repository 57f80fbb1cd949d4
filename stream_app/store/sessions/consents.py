"""Consent records of a session."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy import Connection

from stream_app.contracts.events import ConsentPurpose, ConsentStatus
from stream_app.store.database.tables import consents, sessions
from stream_app.store.sessions.scope import SCOPES, Scope
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


def of_session(store: Store, scope: Scope, session_id: str) -> SessionConsent | None:
    """A session's consent, also if the session is hidden; None if it is not in the scope."""
    with store.reading() as connection:
        found = connection.execute(_of_session(scope), {"session_id": session_id}).all()
    if not found:
        return None
    first = found[0]
    return SessionConsent(
        first.session_id,
        first.consent,
        first.withdrawn,
        first.hidden,
        [_read(row) for row in found if row.status is not None],
    )


@lru_cache(maxsize=SCOPES)
def _of_session(scope: Scope) -> sa.Select[Any]:
    """A row for each record, and one without a record for a session that has none."""
    own = Scope(scope.team, scope.speaker, with_hidden=True)
    session = (sessions.c.session_id, sessions.c.consent, sessions.c.withdrawn, sessions.c.hidden)
    return (
        sa.select(*session, *(consents.c[field] for field in ConsentRead.__slots__))
        .outerjoin_from(sessions, consents, consents.c.session_id == sessions.c.session_id)
        .where(
            sessions.c.session_id == sa.bindparam("session_id"),
            *own.conditions(sessions.c.session_id, sessions),
        )
        .order_by(consents.c.occurred_at, consents.c.stored_at, consents.c.consent_id)
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
