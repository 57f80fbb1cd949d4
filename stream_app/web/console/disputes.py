"""The page on which supervisors answer their team's disputes."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import TypeAdapter

from stream_app.store import disputes
from stream_app.store.disputes import Decision
from stream_app.web.api.fields import Identifier, Note
from stream_app.web.auth import Supervisor
from stream_app.web.console.rendering import render
from stream_app.web.http_errors import as_http_errors
from stream_app.web.services import ServicesDep

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
MAX_ANSWERED = 50
_note = TypeAdapter[str](Note)


@router.get("/disputes")
def disputes_page(request: Request, services: ServicesDep, person: Supervisor) -> Response:
    """List unanswered disputes, then answered ones."""
    found = disputes.find(services.store, person.scope, waiting=True)
    answered = disputes.find(services.store, person.scope, waiting=False, limit=MAX_ANSWERED)
    return render(request, "disputes.html", person, waiting=found, answered=answered)


@router.post("/disputes/{dispute_id}")
def answer(
    services: ServicesDep,
    person: Supervisor,
    dispute_id: Identifier,
    decision: Annotated[Decision, Form()],
    answer: Annotated[str, Form()],
) -> Response:
    """Uphold or reject a dispute; 409 if someone else has answered it meanwhile."""
    with as_http_errors():
        disputes.decide(
            services.store, person, dispute_id, decision, _note.validate_python(answer.strip())
        )
    return RedirectResponse("/disputes", status_code=303)
