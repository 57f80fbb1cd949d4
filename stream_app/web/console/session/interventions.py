"""Interventions on a session's page: notes to the counsellor's desk, take-over and hand-back."""

from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from stream_app.contracts.interventions import InterventionKind
from stream_app.contracts.scores import SessionStatus
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.alerts import interventions as stored
from stream_app.store.alerts.interventions import InterventionRead
from stream_app.store.sessions import sessions
from stream_app.web import interventions
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import Comment, Identifier
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.http.path_segments import SESSION_ID, path_segment
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Reader, Supervisor

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@router.post(f"/sessions/{SESSION_ID}/interventions")
def intervene(
    services: ServicesDep,
    person: Supervisor,
    session_id: Identifier,
    kind: Annotated[InterventionKind, Form()],
    text: Annotated[Comment, Form()] = "",
) -> Response:
    """Send a note to the desk, take the session over, or hand it back."""
    words = text.strip() if kind is InterventionKind.NOTE else None
    if words == "":
        raise HTTPException(422, "the note is empty")
    with as_http_errors():
        interventions.intervene(services, person, session_id, kind, words)
    return RedirectResponse(f"/sessions/{path_segment(session_id)}#hand-over", status_code=303)


@router.get(f"/sessions/{SESSION_ID}/interventions")
def list_interventions(
    request: Request, session_id: Identifier, services: ServicesDep, person: Reader
) -> Response:
    """Render the list again, for live updates."""
    card = sessions.one(services.store, person.scope, session_id)
    if card is None:
        raise HTTPException(404)
    audit.record(
        services.store, person.name, AuditAction.READ_TRANSCRIPT, session_id, "interventions"
    )
    sent = load(services, person, session_id)
    return render(
        request,
        "hand_over_list.html",
        person,
        interventions=sent,
        leader=stored.leader(sent),
        session_id=session_id,
        live=card.status is not SessionStatus.CLOSED,
    )


def load(services: Services, person: Person, session_id: str) -> list[InterventionRead]:
    """The interventions in a session, for people who may read its text."""
    if not person.reads_transcripts:
        return []
    return stored.of_session(services.store, person.scope, session_id)
