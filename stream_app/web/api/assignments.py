"""Assigning a session to a counsellor who did not begin it."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Path

from stream_app.store import assignments, audit
from stream_app.store.audit import AuditAction
from stream_app.store.people import Person, PersonRole
from stream_app.store.queries import sessions
from stream_app.web.api.fields import Identifier
from stream_app.web.auth import Supervisor
from stream_app.web.path_segments import SESSION_ID
from stream_app.web.services import Services, ServicesDep

router = APIRouter(prefix="/sessions", tags=["sessions"])
SessionId = Annotated[Identifier, Path(description="The session's id, as in its events")]
Name = Annotated[Identifier, Path(description="Name of a counsellor's account")]


@router.put(f"/{SESSION_ID}/readers/{{name}}", status_code=204)
def assign_session(
    services: ServicesDep, person: Supervisor, session_id: SessionId, name: Name
) -> None:
    """Let a counsellor read a session, for example after a hand-over.

    The first counsellor of a session reads it without an assignment. Audited.
    """
    counsellor = _counsellor(services, person, session_id, name)
    assignments.assign(services.store, session_id, counsellor, person.name)
    audit.record(services.store, person.name, AuditAction.ASSIGN, session_id, f"to {name}")


@router.delete(f"/{SESSION_ID}/readers/{{name}}", status_code=204)
def withdraw_assignment(
    services: ServicesDep, person: Supervisor, session_id: SessionId, name: Name
) -> None:
    """Delete a counsellor's assignment; the session's first counsellor keeps access. Audited."""
    counsellor = _counsellor(services, person, session_id, name)
    assignments.withdraw(services.store, session_id, counsellor)
    audit.record(
        services.store, person.name, AuditAction.ASSIGN, session_id, f"no longer to {name}"
    )


def _counsellor(services: Services, person: Person, session_id: str, name: str) -> str:
    """The pseudonym of a counsellor's account.

    Raises:
        HTTPException: 404 for a session out of scope, or no such account in the person's team.
    """
    if sessions.one(services.store, person.scope, session_id) is None:
        raise HTTPException(404, "no such session")
    found = services.people.find(name)
    of_team = found is not None and (person.team is None or found.team in (None, person.team))
    if found is None or found.role is not PersonRole.COUNSELLOR or not of_team:
        raise HTTPException(404, "no such counsellor in your team")
    if found.speaker is None:
        raise HTTPException(404, "this account has no speaker id: `rapport people add --speaker`")
    return found.speaker
