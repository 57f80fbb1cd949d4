"""The page of one review: the transcript beside the scorecard, with comments on turns."""

from typing import Annotated, Final

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.sessions import sessions, transcripts
from stream_app.store.sessions.scored_turns import InvalidJudgement
from stream_app.web.console.rendering import render
from stream_app.web.console.session.session import PAGE_TURNS, last_seq, page_of
from stream_app.web.http.fields import MAX_SEQ, FormComment, Identifier
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.http.path_segments import path_segment
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Supervisor
from stream_app.work import reviewing

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
PREFIX: Final = "answer-"
"""Prefix of the fields with answers; the rest of the name is the criterion."""


@router.get("/reviews/{review_id}")
def review(
    request: Request,
    review_id: Identifier,
    services: ServicesDep,
    person: Supervisor,
    page: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Response:
    """Show a review; the reviewer and, once it is released, others read it with the transcript.

    Reads of the transcript are audited.
    """
    with as_http_errors():
        found = reviewing.read(services, person, review_id)
    session_id = found.review.session_id
    shown = _turns(services, person, session_id, page) if found.visible else []
    if not found.visible:
        services.accesses.record(person.name, AuditAction.READ_SCORES, "review", session_id)
    card = sessions.one(services.store, person.scope, session_id)
    return render(
        request,
        "review.html",
        person,
        found=found,
        turns=shown,
        comments={each.seq: each for each in found.comments},
        page=page,
        last_page=page_of(last_seq(card)) if card else 0,
        page_turns=PAGE_TURNS,
        page_of=page_of,
        prefix=PREFIX,
    )


@router.post("/reviews/{review_id}")
async def answer(
    request: Request, review_id: Identifier, services: ServicesDep, person: Supervisor
) -> Response:
    """Save the answers of a scorecard, or save them and sign off."""
    form = await request.form()
    return await run_in_threadpool(_answer, services, person, review_id, form)


def _answer(services: Services, person: Person, review_id: str, form: FormData) -> Response:
    sign = form.get("do") == "sign-off"
    with as_http_errors():
        values = {
            name.removeprefix(PREFIX): _step(value)
            for name, value in form.items()
            if name.startswith(PREFIX)
        }
        reviewing.save(services, person, review_id, values, sign=sign)
    address = f"/reviews/{review_id}"
    return RedirectResponse("/reviews" if sign else f"{address}#scorecard", status_code=303)


@router.post("/reviews/{review_id}/comments")
def comment(
    services: ServicesDep,
    person: Supervisor,
    review_id: Identifier,
    seq: Annotated[int, Form(ge=0, le=MAX_SEQ)],
    comment: FormComment = "",
) -> Response:
    """Comment on a turn; an empty comment removes the earlier one."""
    with as_http_errors():
        reviewing.comment(services, person, review_id, seq, comment)
    address = f"/reviews/{review_id}?page={page_of(seq)}#turn-{seq}"
    return RedirectResponse(address, status_code=303)


@router.post("/reviews/{review_id}/withdraw")
def withdraw(services: ServicesDep, person: Supervisor, review_id: Identifier) -> Response:
    """Withdraw an open review, and show the reviews of its session."""
    with as_http_errors():
        withdrawn = reviewing.withdraw(services, person, review_id)
    address = f"/sessions/{path_segment(withdrawn.session_id)}/reviews"
    return RedirectResponse(address, status_code=303)


def _turns(
    services: Services, person: Person, session_id: str, page: int
) -> list[transcripts.TurnRead]:
    audit.record(services.store, person.name, AuditAction.READ_TRANSCRIPT, session_id, "review")
    first = page * PAGE_TURNS
    found = transcripts.read(
        services.store, person.scope, session_id, after_seq=first - 1, limit=PAGE_TURNS
    )
    return [turn for turn in found if turn.seq < first + PAGE_TURNS]


def _step(value: object) -> int:
    """The index of a step.

    Raises:
        InvalidJudgement: it is no small number.
    """
    if not isinstance(value, str) or not value.isascii() or not value.isdigit() or len(value) > 1:
        raise InvalidJudgement("the scorecard has no such step")
    return int(value)
