"""Counsellors by pseudonym: number of sessions, and each counsellor's own trend."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path
from pydantic import Field

from stream_app.findings.trends import MIN_SESSIONS, WEEKS, Trend, trends
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.roles import PersonRole, Right
from stream_app.store.database.pages import Page
from stream_app.store.sessions import counsellors, turn_levels
from stream_app.store.sessions.counsellors import Counsellor
from stream_app.store.sessions.scope import Scope
from stream_app.web.http.fields import Cursor, Identifier, Limit
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Reader, needs

router = APIRouter(prefix="/speakers", tags=["speakers"])


@dataclass(frozen=True, slots=True)
class SpeakerRead:
    """A counsellor and the trend of their levels over the last 26 weeks."""

    counsellor: Counsellor
    fewest_sessions: Annotated[
        int, Field(description="A week with fewer sessions has `n` but no mean")
    ]
    trends: Annotated[
        list[Trend],
        Field(
            description="Mean level 0-2 of each mechanism by week, over sessions, with a 95 % "
            "interval, separately for each bundle. Not a performance rating"
        ),
    ]


@router.get("")
@needs(Right.READ_SCORES)
def list_speakers(
    services: ServicesDep, person: Reader, cursor: Cursor = None, limit: Limit = 50
) -> Page[Counsellor]:
    """Counsellors whose sessions you may read, ordered by pseudonym; no other order exists."""
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "list of counsellors")
    return counsellors.find(services.store, person.scope, cursor, limit)


@router.get("/{speaker}")
@needs(Right.READ_SCORES)
def one_speaker(
    services: ServicesDep,
    person: Reader,
    speaker: Annotated[Identifier, Path(description="The pseudonym, 32 hexadecimal digits")],
) -> SpeakerRead:
    """One counsellor's trend, for the counsellor and for supervisors, whose reads are audited.

    For the sessions, use `/sessions?counsellor=…`.
    """
    found = counsellors.one(services.store, person.scope, speaker)
    if found is None:
        raise HTTPException(404, "no such counsellor")
    if person.role is not PersonRole.COUNSELLOR:
        action = AuditAction.READ_COUNSELLOR
        audit.record(services.store, person.name, action, counsellor=speaker)
    else:
        services.accesses.record(person.name, AuditAction.READ_STATISTICS, "own page")
    since = datetime.now(UTC) - timedelta(weeks=WEEKS)
    scope = Scope(team=person.scope.team, speaker=speaker)
    turns = turn_levels.of_counsellor(services.store, scope, speaker, since)
    return SpeakerRead(found, MIN_SESSIONS, trends(turns))
