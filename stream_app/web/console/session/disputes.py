"""The page on which supervisors answer their team's disputes."""

from collections.abc import Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.sessions import transcripts
from stream_app.store.sessions.transcripts import TurnRead
from stream_app.store.work import disputes
from stream_app.store.work.disputes import Decision, Dispute
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import FormNote, Identifier
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Supervisor
from stream_app.work import acting

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
MAX_WAITING: Final = 50
MAX_ANSWERED: Final = 50
TURNS_BEFORE: Final = 1


@router.get("/disputes")
def disputes_page(request: Request, services: ServicesDep, person: Supervisor) -> Response:
    """List unanswered disputes, then answered ones."""
    services.accesses.record(person.name, AuditAction.READ_SCORES, "disputes")
    found = disputes.find(services.store, person.scope, waiting=True, limit=MAX_WAITING)
    answered = disputes.find(services.store, person.scope, waiting=False, limit=MAX_ANSWERED)
    return render(
        request,
        "disputes.html",
        person,
        waiting=found,
        count=disputes.count_waiting(services.store, person.scope),
        turns=_disputed_turns(services, person, found),
        answered=answered,
    )


def _disputed_turns(
    services: Services, person: Person, found: Sequence[Dispute]
) -> dict[str, list[TurnRead]]:
    """The disputed turn and the one before it, by dispute; each read is audited."""
    turns = {}
    for one in found:
        detail = f"turn {one.seq}, disputed"
        audit.record(
            services.store, person.name, AuditAction.READ_TRANSCRIPT, one.session_id, detail
        )
        read = transcripts.read(
            services.store,
            person.scope,
            one.session_id,
            after_seq=one.seq - 1 - TURNS_BEFORE,
            limit=1 + TURNS_BEFORE,
        )
        turns[one.dispute_id] = [turn for turn in read if turn.seq <= one.seq]
    return turns


@router.post("/disputes/{dispute_id}")
def answer(
    services: ServicesDep,
    person: Supervisor,
    dispute_id: Identifier,
    decision: Annotated[Decision, Form()],
    answer: FormNote,
) -> Response:
    """Uphold or reject a dispute; 409 if someone else has answered it meanwhile."""
    with as_http_errors():
        acting.check_dispute_read(services, person, dispute_id)
        disputes.decide(services.store, person, dispute_id, decision, answer)
    return RedirectResponse("/disputes", status_code=303)
