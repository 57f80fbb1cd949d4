"""A supervisor's queue of reviews, assigning a session or alert, and agreement of reviewers."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Form, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from stream_app.core.rules.scorecards import asked
from stream_app.findings import proposal_agreement, review_agreement
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.alerts import alerts
from stream_app.store.sessions import sessions
from stream_app.store.work import assignments, reviews
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import Identifier, Moment
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.http.path_segments import SESSION_ID, path_segment
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import ReportReader, Supervisor
from stream_app.work import reviewing

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
FARTHEST_ZONE: Final = timedelta(hours=14, seconds=1)
"""How far a zone is from UTC at most; a browser sends whole seconds."""
USUAL_DAYS: Final = 7
MAX_OTHERS: Final = 100
MAX_SIGNED: Final = 50


@router.get("/reviews")
def queue(request: Request, services: ServicesDep, person: Supervisor) -> Response:
    """Show the open reviews of this person by due time, then those of colleagues."""
    services.accesses.record(person.name, AuditAction.READ_SCORES, "reviews")
    store, scope = services.store, person.scope
    waiting = reviews.find(store, scope, signed=False)
    return render(
        request,
        "review_queue.html",
        person,
        mine=reviews.find(store, scope, reviewer=person.name, signed=False),
        others=[each for each in waiting if each.reviewer != person.name][:MAX_OTHERS],
        signed=reviews.find(store, scope, signed=True, limit=MAX_SIGNED),
    )


@router.get("/reviews/agreement")
def agreement(request: Request, services: ServicesDep, person: ReportReader) -> Response:
    """Show how well two people agree in double reviews, and a language model with people."""
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "agreement of reviews")
    store, scope = services.store, person.scope
    return render(
        request,
        "review_agreement.html",
        person,
        found=review_agreement.of_double_reviews(store, scope),
        proposed=proposal_agreement.of_all(store, scope, asked(services.scorecards)),
    )


@router.get(f"/sessions/{SESSION_ID}/reviews")
def of_session(
    request: Request,
    session_id: Identifier,
    services: ServicesDep,
    person: Supervisor,
    alert: Annotated[Identifier | None, Query()] = None,
) -> Response:
    """Show a session's reviews and the form that assigns one, without its text."""
    store, scope = services.store, person.scope
    card = sessions.one(store, scope, session_id)
    about = alerts.one(store, scope, alert) if alert else None
    if card is None or (alert and (about is None or about.session_id != session_id)):
        raise HTTPException(404)
    services.accesses.record(person.name, AuditAction.READ_SCORES, "reviews", session_id)
    return render(
        request,
        "review_assign.html",
        person,
        card=card,
        about=about,
        found=reviews.find(store, scope, session_id=session_id),
        reviewers=reviewing.reviewers(services, card),
        assignable=assignments.is_assignable(store, session_id),
        scorecards=list(services.scorecards.values()),
        due=datetime.now(UTC).date() + timedelta(days=USUAL_DAYS),
    )


@router.post(f"/sessions/{SESSION_ID}/reviews")
def assign(
    services: ServicesDep,
    person: Supervisor,
    session_id: Identifier,
    reviewer: Annotated[Identifier, Form()],
    due: Annotated[date, Form()],
    due_at: Annotated[Moment | Literal[""], Form()] = "",
    scorecard: Annotated[Identifier | None, Form()] = None,
    alert: Annotated[Identifier | None, Form()] = None,
) -> Response:
    """Assign a review, due at the end of a day: in UTC, or at the moment that the script sends."""
    ends = _end_of(due, due_at or None)
    with as_http_errors():
        reviewing.assign(services, person, session_id, reviewer, ends, scorecard, alert)
    return RedirectResponse(f"/sessions/{path_segment(session_id)}/reviews", status_code=303)


def _end_of(day: date, sent: datetime | None) -> datetime:
    """The end of a day in the zone of the person, whose browser knows it.

    Raises:
        HTTPException: the moment is in no zone the end of that day (422).
    """
    in_utc = datetime.combine(day, time.max, UTC)
    if sent is None:
        return in_utc
    if sent.tzinfo is None or abs(sent - in_utc) > FARTHEST_ZONE:
        raise HTTPException(422, "due_at is not the end of the day that was chosen")
    return sent
