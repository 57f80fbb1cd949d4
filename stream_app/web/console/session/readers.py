"""The forms of a session's page that assign it to counsellors."""

from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import RedirectResponse, Response

from stream_app.web.http.fields import Identifier
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.http.path_segments import SESSION_ID, path_segment
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Supervisor
from stream_app.work import reader_assignment

router = APIRouter(include_in_schema=False)
Name = Annotated[Identifier, Form()]


@router.post(f"/sessions/{SESSION_ID}/readers")
def assign(
    services: ServicesDep, person: Supervisor, session_id: Identifier, name: Name
) -> Response:
    """Let a counsellor read the session."""
    with as_http_errors():
        reader_assignment.assign(services, person, session_id, name)
    return _back(session_id)


@router.post(f"/sessions/{SESSION_ID}/readers/withdraw")
def withdraw(
    services: ServicesDep, person: Supervisor, session_id: Identifier, name: Name
) -> Response:
    """Withdraw the session from a counsellor."""
    with as_http_errors():
        reader_assignment.withdraw(services, person, session_id, name)
    return _back(session_id)


def _back(session_id: str) -> Response:
    return RedirectResponse(f"/sessions/{path_segment(session_id)}#readers", status_code=303)
