"""``GET /audit``: who read which transcript and who did what."""

from typing import Annotated

from fastapi import APIRouter, Query

from stream_app.store import audit
from stream_app.store.audit import Audited, Trace
from stream_app.store.reading.pages import Page
from stream_app.web.api.fields import Cursor, Identifier, Limit
from stream_app.web.auth import Admin
from stream_app.web.services import Wired

router = APIRouter(tags=["account"])


@router.get("/audit")
def audit_trail(
    services: Wired,
    person: Admin,  # noqa: ARG001  # administrators only
    session: Annotated[Identifier | None, Query(description="Only about this session")] = None,
    by: Annotated[Identifier | None, Query(description="Only what this person did")] = None,
    action: Annotated[Audited | None, Query(description="Only this kind of entry")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Trace]:
    """The audit trail, newest first; for administrators. It holds no transcript text."""
    return audit.find(
        services.store, session_id=session, person=by, action=action, cursor=cursor, limit=limit
    )
