"""Coaching goals: the form on a counsellor's page of development, and the page of one goal.

Only the supervisor who set a goal and the counsellor can open it; everybody else gets 404.
"""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from stream_app.analytics.questions.result import Curve
from stream_app.findings.trends import MIN_SESSIONS
from stream_app.store.sessions import bundle_info
from stream_app.store.work import coaching_goals
from stream_app.store.work.coaching_goals import GoalState
from stream_app.store.work.development import MeasuredSession
from stream_app.web.console.analytics.figures import figures
from stream_app.web.console.people.development import TOO_FEW, curves
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import FormNote, Identifier
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.http.path_segments import path_segment
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import CurrentPerson, Supervisor
from stream_app.work import goal_progress
from stream_app.work.goal_progress import Sessions, Target

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
BEFORE: Final = "before the goal"
SINCE: Final = "since the goal"
PERIOD: Final = timedelta(days=14)


@router.post("/counsellors/{pseudonym}/goals")
def add(
    pseudonym: Identifier,
    services: ServicesDep,
    person: Supervisor,
    measure: Annotated[Identifier, Form()],
    goal: FormNote,
    starts_on: Annotated[date, Form()],
    ends_on: Annotated[date, Form()],
    target: Annotated[Target | None, Form()] = None,
) -> Response:
    """Set a goal for a counsellor of the supervisor's sessions."""
    with as_http_errors():
        goal_progress.add(services, person, pseudonym, measure, goal, starts_on, ends_on, target)
    address = f"/counsellors/{path_segment(pseudonym)}/development#goals"
    return RedirectResponse(address, status_code=303)


@router.get("/goals/{goal_id}")
def goal(
    request: Request, goal_id: Identifier, services: ServicesDep, person: CurrentPerson
) -> Response:
    """Show a goal with the curve of its measure before it and since; the read is recorded."""
    with as_http_errors():
        found = coaching_goals.one(services.store, person, goal_id)
    goal_progress.record_read(services, person, found.counsellor)
    around = goal_progress.sessions_around(services, person, found)
    today = datetime.now(UTC).date()
    store = services.read_store
    return render(
        request,
        "goal.html",
        person,
        progress=goal_progress.progress(found, around, today),
        today=today,
        own=person.speaker == found.counsellor,
        name=services.people.names_of_speakers().get(found.counsellor),
        figures=list(figures(store, _curves(around, found.measure), TOO_FEW)),
        fewest=MIN_SESSIONS,
        synthetic=bundle_info.synthetic(store),
    )


@router.post("/goals/{goal_id}")
def end(
    goal_id: Identifier,
    services: ServicesDep,
    person: CurrentPerson,
    state: Annotated[Literal["reached", "closed"], Form()],
) -> Response:
    """End a goal, as the supervisor who set it."""
    with as_http_errors():
        coaching_goals.end(services.store, person, goal_id, GoalState(state))
    return RedirectResponse(f"/goals/{goal_id}", status_code=303)


def _curves(around: Sessions, measure: str) -> list[Curve]:
    """Curves by two weeks from the goal's first day, so that none has sessions of both times."""

    def begins(session: MeasuredSession) -> date:
        return around.starts_on + (session.day - around.starts_on) // PERIOD * PERIOD

    return [
        replace(curve, group=group)
        for group, found in ((BEFORE, around.before), (SINCE, around.since))
        for curve in curves(found, measure, "two weeks", begins)
    ]
