"""Feedback to the counsellor after a session."""

from typing import Annotated

from fastapi import APIRouter, Path

from stream_app.web.api.fields import Identifier
from stream_app.web.auth import Reader
from stream_app.web.feedback import reading
from stream_app.web.feedback.composition import Feedback
from stream_app.web.refused import as_http
from stream_app.web.segments import SESSION
from stream_app.web.services import Wired

router = APIRouter(prefix="/sessions", tags=["feedback"])


@router.get(f"/{SESSION}/feedback")
def feedback_on_session(
    services: Wired,
    person: Reader,
    session_id: Annotated[Identifier, Path(description="A closed or idle session")],
) -> list[Feedback]:
    """What was there, what is missing, how it typically sounds; one strength, one suggestion.

    One item for each counsellor of the session; a counsellor gets the own one. Quotes are
    `[start, end)` in characters of the turn's text. 409 while the session is open.
    """
    with as_http():
        return reading.of_session(services.store, person, session_id)
