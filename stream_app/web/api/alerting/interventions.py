"""Interventions of supervisors in running sessions, and receipts of counsellors' desks."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Self

from fastapi import APIRouter, HTTPException, Path
from pydantic import BaseModel, ConfigDict, Field, model_validator

from stream_app.contracts.interventions import InterventionKind
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.roles import Right
from stream_app.store.alerts import interventions as stored
from stream_app.store.alerts.interventions import InterventionRead
from stream_app.store.sessions import sessions
from stream_app.web import interventions
from stream_app.web.http.fields import Identifier, Note
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.http.path_segments import SESSION_ID
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Reader, Sender, Supervisor, needs

router = APIRouter(tags=["interventions"])
SessionId = Annotated[Identifier, Path(description="The session's id, as in its events")]


class NewIntervention(BaseModel):
    """What to do in the session: send a note to the counsellor's desk, take over or hand back."""

    model_config = ConfigDict(extra="forbid")

    kind: InterventionKind
    text: Annotated[
        Note | None, Field(description="Required for a note; redacted like turn text")
    ] = None
    episode_id: Annotated[
        Identifier | None, Field(description="The alert that it answers, of this session")
    ] = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.text is None) == (self.kind is InterventionKind.NOTE):
            raise ValueError("a note has a text, a take-over and a hand-back have none")
        return self


@dataclass(frozen=True, slots=True)
class Receipt:
    """The first receipt of an intervention."""

    intervention_id: str
    received_at: datetime | None


@router.post(f"/sessions/{SESSION_ID}/interventions", status_code=201)
@needs(Right.ACT)
def intervene(
    services: ServicesDep, person: Supervisor, session_id: SessionId, new: NewIntervention
) -> InterventionRead:
    """Send a note to the counsellor's desk, take the session over, or hand it back.

    The intervention is stored first, and published on the topic `interventions` at once or as soon
    as the broker is reachable. 409: the session has ended or may not be analysed, or the take-over
    is not possible: one supervisor at a time leads a session. Audited.
    """
    with as_http_errors():
        return interventions.intervene(
            services, person, session_id, new.kind, new.text, new.episode_id
        )


@router.get(f"/sessions/{SESSION_ID}/interventions")
@needs(Right.READ_TEXT)
def list_interventions(
    services: ServicesDep, person: Reader, session_id: SessionId
) -> list[InterventionRead]:
    """Interventions in a session, oldest first, with their receipts. Every read is audited."""
    if sessions.one(services.store, person.scope, session_id) is None:
        raise HTTPException(404, "no such session")
    audit.record(
        services.store, person.name, AuditAction.READ_TRANSCRIPT, session_id, "interventions"
    )
    return stored.of_session(services.store, person.scope, session_id)


@router.post("/interventions/{intervention_id}/receipt")
@needs(Right.SEND_EVENTS)
def receive(
    services: ServicesDep,
    person: Sender,
    intervention_id: Annotated[
        Identifier, Path(description="The `intervention_id` of the message")
    ],
) -> Receipt:
    """Confirm that a desk has shown an intervention to the counsellor.

    Requires the role `ingest`; a token that is limited to a team, a domain or a channel can confirm
    only interventions in such sessions. Repeating it is safe: the first receipt counts.
    """
    with as_http_errors():
        found = interventions.confirm(services, person, intervention_id)
    return Receipt(found.intervention_id, found.received_at)
