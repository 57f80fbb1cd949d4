"""The page with feedback after a session."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.findings.feedback import loading, turn_loading
from stream_app.findings.feedback.composition import TooEarly
from stream_app.findings.feedback.turns import TurnFeedback
from stream_app.store.accounts.roles import PersonRole
from stream_app.web.console.rendering import render, templates
from stream_app.web.console.session.evidence import TextSegment, segments
from stream_app.web.console.session.session import PAGE_TURNS
from stream_app.web.http.fields import Identifier
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.http.path_segments import SESSION_ID, path_segment
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Reader

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class TurnFeedbackView:
    """Feedback on a turn, and its text with the words of each mechanism marked."""

    feedback: TurnFeedback
    segments: list[TextSegment]


def turn_address(session_id: str, seq: int) -> str:
    """The address of a turn on its session's page.

    >>> turn_address("a/b", 205)
    '/sessions/a%2Fb?page=1#turn-205'
    """
    return f"/sessions/{path_segment(session_id)}?page={seq // PAGE_TURNS}#turn-{seq}"


templates.env.globals["turn_address"] = turn_address
templates.env.globals["page_turns"] = PAGE_TURNS


@router.get(f"/sessions/{SESSION_ID}/feedback")
def feedback_page(
    request: Request,
    session_id: Identifier,
    services: ServicesDep,
    person: Reader,
    page: int = Query(0, ge=0, le=10_000_000),
) -> Response:
    """Show feedback if the session has ended, otherwise a note that it is still open.

    Feedback by turn is on pages of ``PAGE_TURNS`` turns, like the transcript.
    """
    shown: dict[str, Any] = {"early": "", "feedbacks": []}
    with as_http_errors():
        try:
            ended = loading.read_ended(services.store, person, session_id)
        except TooEarly as problem:
            shown["early"] = str(problem)
        else:
            seqs = range(page * PAGE_TURNS, (page + 1) * PAGE_TURNS)
            by_turn = turn_loading.turn_feedback(services.store, person, ended, seqs)
            shown = {
                "early": "",
                "feedbacks": loading.session_feedback(ended),
                "by_turn": {name: list(map(_view, turns)) for name, turns in by_turn.items()},
                "last_page": ended.turns[-1].seq // PAGE_TURNS if ended.turns else 0,
                "practice": services.settings.practice and person.role is PersonRole.COUNSELLOR,
            }
    return render(request, "feedback_page.html", person, session_id=session_id, page=page, **shown)


def _view(turn: TurnFeedback) -> TurnFeedbackView:
    return TurnFeedbackView(turn, segments(turn.text or "", turn.shown))
