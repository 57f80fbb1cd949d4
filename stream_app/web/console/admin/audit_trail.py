"""The audit trail with filters, newest first. Reading it is recorded, too."""

from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.web.console.overviews.wall import FilterValue
from stream_app.web.console.rendering import render
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Admin

router = APIRouter(prefix="/admin", default_response_class=HTMLResponse, include_in_schema=False)
PAGE_SIZE: Final = 100


@router.get("/audit")
def audit_trail(
    request: Request,
    services: ServicesDep,
    person: Admin,
    by: FilterValue = "",
    action: FilterValue = "",
    session: FilterValue = "",
    cursor: Annotated[str | None, Query(max_length=2000)] = None,
) -> Response:
    """List entries of a person, an action or a session."""
    try:
        chosen = AuditAction(action) if action else None
    except ValueError:
        raise HTTPException(422, "there is no such action") from None
    audit.record(services.store, person.name, AuditAction.READ_AUDIT)
    page = audit.find(
        services.store,
        session_id=session or None,
        person=by.strip() or None,
        action=chosen,
        cursor=cursor,
        limit=PAGE_SIZE,
    )
    sent = {"by": by, "action": action, "session": session}
    return render(
        request,
        "admin_audit.html",
        person,
        entries=page.items,
        next_cursor=page.next_cursor,
        first_page=cursor is None,
        query=urlencode({name: value for name, value in sent.items() if value}),
        by=by,
        action=action,
        session=session,
        actions=sorted(each.value for each in AuditAction),
    )
