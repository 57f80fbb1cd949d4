"""Consent of a session: its records, and a new one."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated
from uuid import uuid4

import msgspec
from fastapi import APIRouter, HTTPException, Path
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.concurrency import run_in_threadpool

from stream_app.contracts.events import MAX_VERSION_CHARS, Consent, ConsentPurpose, ConsentStatus
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import Right
from stream_app.store.sessions import consents
from stream_app.store.sessions.consents import SessionConsent
from stream_app.web import consent_log
from stream_app.web.http.fields import NO_NUL, Identifier
from stream_app.web.http.path_segments import SESSION_ID
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Supervisor, needs

router = APIRouter(prefix="/sessions", tags=["sessions"])
SessionId = Annotated[Identifier, Path(description="The session's id, as in its events")]
Short = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=NO_NUL)]
Version = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_VERSION_CHARS, pattern=NO_NUL)
]


class NewConsent(BaseModel):
    """What a person decided about the analysis of the session."""

    model_config = ConfigDict(extra="forbid")

    status: ConsentStatus
    version: Annotated[
        Version | None,
        Field(
            description="Version of the wording; only a newer one than any before ends a withdrawal"
        ),
    ] = None
    source: Annotated[Short, Field(description="Where it was recorded")] = "supervisor"
    speaker_id: Annotated[
        Identifier | None,
        Field(description="Who decided, as in the events; stored as a pseudonym"),
    ] = None
    purposes: Annotated[
        list[ConsentPurpose],
        Field(
            max_length=10,
            description="What the person also agreed to; without effect unless `given`",
        ),
    ] = []


@router.get(f"/{SESSION_ID}/consents")
@needs(Right.READ_SCORES)
def consents_of_session(
    services: ServicesDep, person: Supervisor, session_id: SessionId
) -> SessionConsent:
    """Consent of a session and its records, also if the session is hidden.

    Tokens that may not read transcripts get `source: null`.
    """
    found = _known(services, person, session_id)
    services.accesses.record(person.name, AuditAction.READ_RECORDS, "consents", session_id)
    if person.reads_transcripts:
        return found
    return replace(found, records=[replace(record, source=None) for record in found.records])


@router.post(f"/{SESSION_ID}/consents", status_code=202)
@needs(Right.ACT)
async def record_consent(
    services: ServicesDep, person: Supervisor, session_id: SessionId, new: NewConsent
) -> None:
    """Send a consent record of a known session to the log; a worker applies it. Audited.

    Programs that record consent send events of type `consent` to `/events`.
    """
    await run_in_threadpool(_known, services, person, session_id)
    agreed = new.purposes if new.status is ConsentStatus.GIVEN else []
    event = Consent(
        session_id=session_id,
        status=new.status,
        occurred_at=datetime.now(UTC),
        version=new.version,
        source=new.source,
        speaker_id=new.speaker_id,
        consent_id=str(uuid4()),
        purposes=agreed or msgspec.UNSET,
    )
    await consent_log.send(services, person, event)


def _known(services: Services, person: Person, session_id: str) -> SessionConsent:
    found = consents.of_session(services.store, person.scope, session_id)
    if found is None:
        raise HTTPException(404, "no such session")
    return found
