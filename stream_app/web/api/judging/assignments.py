"""Assigning a session to a counsellor who did not begin it."""

from typing import Annotated

from fastapi import APIRouter, Path

from stream_app.store.accounts.roles import Right
from stream_app.web.http.fields import Identifier
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.http.path_segments import SESSION_ID
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Supervisor, needs
from stream_app.work import reader_assignment

router = APIRouter(prefix="/sessions", tags=["sessions"])
SessionId = Annotated[Identifier, Path(description="The session's id, as in its events")]
Name = Annotated[Identifier, Path(description="Name of a counsellor's account")]


@router.put(f"/{SESSION_ID}/readers/{{name}}", status_code=204)
@needs(Right.ACT)
def assign_session(
    services: ServicesDep, person: Supervisor, session_id: SessionId, name: Name
) -> None:
    """Let a counsellor read a session, for example after a hand-over.

    The first counsellor of a session reads it without an assignment. A session without consent
    cannot be assigned (409). Audited.
    """
    with as_http_errors():
        reader_assignment.assign(services, person, session_id, name)


@router.delete(f"/{SESSION_ID}/readers/{{name}}", status_code=204)
@needs(Right.ACT)
def withdraw_assignment(
    services: ServicesDep, person: Supervisor, session_id: SessionId, name: Name
) -> None:
    """Delete a counsellor's assignment; the session's first counsellor keeps access. Audited."""
    with as_http_errors():
        reader_assignment.withdraw(services, person, session_id, name)
