"""``GET /sessions/{session_id}/feedback``: feedback to the counsellor after a session."""

from typing import Annotated

from fastapi import APIRouter, Path

from stream_app.findings.feedback import loading
from stream_app.findings.feedback.composition import Feedback
from stream_app.store.accounts.roles import Right
from stream_app.web.http.fields import Identifier
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.http.path_segments import SESSION_ID
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Reader, needs

router = APIRouter(prefix="/sessions", tags=["feedback"])


@router.get(f"/{SESSION_ID}/feedback")
@needs(Right.READ_TEXT)
def feedback_on_session(
    services: ServicesDep,
    person: Reader,
    session_id: Annotated[Identifier, Path(description="A closed or idle session")],
) -> list[Feedback]:
    """Feedback by mechanism: what was expressed, what is missing, and a strength and suggestion.

    One item per counsellor of the session; counsellors get only their own. Quotes are text spans
    `[start, end)` in code points of the turn's text. 409 while the session is open.
    """
    with as_http_errors():
        return loading.session_feedback(loading.read_ended(services.store, person, session_id))
