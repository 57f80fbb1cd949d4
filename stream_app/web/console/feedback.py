"""The page with the feedback after a session, and the partial that other pages show it with."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.web.api.fields import Identifier
from stream_app.web.auth import Reader
from stream_app.web.console.rendering import render, templates
from stream_app.web.console.session import PAGE_TURNS
from stream_app.web.feedback import loading
from stream_app.web.feedback.composition import TooEarly
from stream_app.web.http_errors import as_http_errors
from stream_app.web.path_segments import SESSION_ID, path_segment
from stream_app.web.services import ServicesDep

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


def turn_address(session_id: str, seq: int) -> str:
    """Where a turn stands on its session's page.

    >>> turn_address("a/b", 205)
    '/sessions/a%2Fb?page=1#turn-205'
    """
    return f"/sessions/{path_segment(session_id)}?page={seq // PAGE_TURNS}#turn-{seq}"


templates.env.globals["turn_address"] = turn_address


@router.get(f"/sessions/{SESSION_ID}/feedback")
def feedback_page(
    request: Request, session_id: Identifier, services: ServicesDep, person: Reader
) -> Response:
    """Feedback once the session is over; until then the page says so."""
    early, told = "", []
    with as_http_errors():
        try:
            told = loading.of_session(services.store, person, session_id)
        except TooEarly as problem:
            early = str(problem)
    return render(
        request,
        "feedback_page.html",
        person,
        session_id=session_id,
        feedbacks=told,
        early=early,
    )
