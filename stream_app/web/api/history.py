"""``GET /history``: sessions over time, one point per session."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from stream_app.contracts.scores import SessionStatus
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.roles import Right
from stream_app.store.database.pages import Page
from stream_app.store.sessions import sessions
from stream_app.store.sessions.sessions import Mechanism, Order, SessionCard, SessionFilter
from stream_app.web.http.fields import Cursor, Identifier, Limit, Moment, Team
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Member, needs

router = APIRouter(tags=["sessions"])


@dataclass(frozen=True, slots=True)
class SessionPoint:
    """A session's aggregates from the bundle that last scored it."""

    session_id: str
    bundle: str
    status: SessionStatus
    started_at: datetime | None
    counsellor_turns: int
    low_empathy_risk: Annotated[float | None, Field(ge=0, le=1)]
    empathy_index: Annotated[float | None, Field(ge=0, le=1)]
    mechanisms: dict[str, Mechanism]
    empathy_total_mean: Annotated[float | None, Field(ge=0, le=6)]


@router.get("/history")
@needs(Right.READ_SCORES)
def history(
    services: ServicesDep,
    person: Member,
    team: Team = None,
    domain: Annotated[Identifier | None, Query(description="Only this domain")] = None,
    channel: Annotated[Identifier | None, Query(description="Only this channel")] = None,
    started_from: Annotated[
        Moment | None, Query(description="Started at this time or later")
    ] = None,
    started_before: Annotated[Moment | None, Query(description="Started before this time")] = None,
    cursor: Cursor = None,
    limit: Limit = 200,
) -> Page[SessionPoint]:
    """Sessions by start time, newest first. Values of different bundles are not comparable."""
    services.accesses.record(person.name, AuditAction.READ_SCORES, "list of sessions")
    chosen = SessionFilter(
        team=team,
        domain=domain,
        channel=channel,
        started_from=started_from,
        started_before=started_before,
    )
    page = sessions.find(services.store, person.scope, chosen, Order.START, cursor, limit)
    return Page([_point(card) for card in page.items], page.next_cursor)


def _point(card: SessionCard) -> SessionPoint:
    return SessionPoint(**{name: getattr(card, name) for name in SessionPoint.__slots__})
