"""Which supervisors are looking at a session: for supervisors only, never for its participants."""

from datetime import UTC, datetime

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.store.accounts import presence
from stream_app.store.accounts.people import Person
from stream_app.store.sessions import sessions
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import Identifier
from stream_app.web.http.path_segments import SESSION_ID
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Supervisor

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
PATH = f"/sessions/{SESSION_ID}/presence"


def report(services: Services, person: Person, session_id: str) -> list[str]:
    """Store that the person looks at the session; return who else does."""
    return presence.report(services.store, session_id, person.name, datetime.now(UTC))


@router.post(PATH)
def still_here(
    request: Request, session_id: Identifier, services: ServicesDep, person: Supervisor
) -> Response:
    """An open page reports itself; the answer is who else looks at the session.

    It shows nothing of the session, so it is not a read: opening the page was one.
    """
    if sessions.bundle_of(services.store, person.scope, session_id) is None:
        raise HTTPException(404)
    others = report(services, person, session_id)
    return render(request, "presence.html", person, others=others)


@router.post(f"{PATH}/leave")
def gone(session_id: Identifier, services: ServicesDep, person: Supervisor) -> Response:
    """A page was closed."""
    if sessions.bundle_of(services.store, person.scope, session_id) is None:
        raise HTTPException(404)
    presence.leave(services.store, session_id, person.name)
    return Response(status_code=204)
