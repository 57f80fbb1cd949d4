"""``GET /audit``: who read what, and other recorded actions. Reading it is recorded, too."""

from typing import Annotated

from fastapi import APIRouter, Query

from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction, AuditEntry
from stream_app.store.accounts.roles import Right
from stream_app.store.database.pages import Page
from stream_app.web.http.fields import Cursor, Identifier, Limit
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Admin, needs

router = APIRouter(tags=["account"])


@router.get("/audit")
@needs(Right.READ_AUDIT)
def audit_trail(
    services: ServicesDep,
    person: Admin,
    session: Annotated[
        Identifier | None, Query(description="Only entries about this session")
    ] = None,
    by: Annotated[Identifier | None, Query(description="Only actions of this person")] = None,
    action: Annotated[AuditAction | None, Query(description="Only this kind of action")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[AuditEntry]:
    """The audit trail, newest first; for administrators. It contains no transcript text."""
    services.accesses.record(person.name, AuditAction.READ_AUDIT, "audit trail")
    return audit.find(
        services.store, session_id=session, person=by, action=action, cursor=cursor, limit=limit
    )
