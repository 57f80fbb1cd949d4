"""The page with feedback after a session."""

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
    """The address of a turn on its session's page.

    >>> turn_address("a/b", 205)
    '/sessions/a%2Fb?page=1#turn-205'
    """
    return f"/sessions/{path_segment(session_id)}?page={seq // PAGE_TURNS}#turn-{seq}"


templates.env.globals["turn_address"] = turn_address


@router.get(f"/sessions/{SESSION_ID}/feedback")
def feedback_page(
    request: Request, session_id: Identifier, services: ServicesDep, person: Reader
) -> Response:
    """Show feedback if the session has ended, otherwise a note that it is still open."""
    early, feedbacks = "", []
    with as_http_errors():
        try:
            feedbacks = loading.session_feedback(services.store, person, session_id)
        except TooEarly as problem:
            early = str(problem)
    return render(
        request,
        "feedback_page.html",
        person,
        session_id=session_id,
        feedbacks=feedbacks,
        early=early,
    )
