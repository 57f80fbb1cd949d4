"""Alerts: list and read them, acknowledge and resolve them, and add notes."""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, ConfigDict, Field

from stream_app.contracts.scores import Severity
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.roles import Right
from stream_app.store.alerts import alerts, precision
from stream_app.store.alerts.alerts import ActionKind, AlertFilter, AlertRead, ShownState
from stream_app.store.alerts.visible_alerts import redact_for
from stream_app.store.database.judgements import Reason
from stream_app.store.database.pages import Page
from stream_app.web import alert_handling
from stream_app.web.http.fields import Cursor, EpisodeId, Identifier, Limit, Note, Team
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Member, Supervisor, needs

router = APIRouter(prefix="/alerts", tags=["alerts"])


class Acknowledgement(BaseModel):
    """Reason for acknowledging an alert."""

    model_config = ConfigDict(extra="forbid")

    reason: Annotated[
        Reason,
        Field(
            description="`justified` raises the rule's precision, `false-alarm` lowers it, "
            "`not-now` does not count; `justified-handled` is stored as `justified`"
        ),
    ]
    note: Annotated[Note | None, Field(description="For colleagues; never leaves the service")] = (
        None
    )


class Resolution(BaseModel):
    """Reason for resolving an alert manually."""

    model_config = ConfigDict(extra="forbid")

    reason: Annotated[Reason | None, Field(description="As for acknowledging")] = None
    note: Note | None = None


class Judgement(BaseModel):
    """Whether an alert was justified, judged at any time after it fired."""

    model_config = ConfigDict(extra="forbid")

    judgement: Annotated[
        Literal["justified", "false-alarm", "not-now"],
        Field(
            description="`justified` raises the rule's precision, `false-alarm` lowers it, "
            "`not-now` (unclear) does not count"
        ),
    ]
    note: Annotated[Note | None, Field(description="For colleagues; never leaves the service")] = (
        None
    )


class NewNote(BaseModel):
    """A note on an alert."""

    model_config = ConfigDict(extra="forbid")

    note: Note


@dataclass(frozen=True, slots=True)
class RulePrecision:
    """Share of a rule's alerts that people judged to be justified."""

    rule: str
    precision: Annotated[float, Field(ge=0, le=1, description="`justified` / `judged`")]
    justified: Annotated[int, Field(ge=0)]
    judged: Annotated[
        int, Field(ge=1, description="Alerts with a judgement; `not-now` does not count")
    ]
    low: Annotated[float, Field(ge=0, le=1, description="Lower end of the 95 % Wilson interval")]
    high: Annotated[float, Field(ge=0, le=1, description="Upper end of the 95 % Wilson interval")]


@router.get("")
@needs(Right.READ_SCORES)
def list_alerts(
    services: ServicesDep,
    person: Member,
    state: Annotated[
        list[ShownState] | None, Query(description="Only these states; may be repeated")
    ] = None,
    rule: Annotated[Identifier | None, Query(description="Only this rule")] = None,
    severity: Annotated[Severity | None, Query(description="Only this severity")] = None,
    session: Annotated[Identifier | None, Query(description="Only this session")] = None,
    fired: Annotated[
        bool | None, Query(description="true: only alerts that have fired; false: only others")
    ] = None,
    judged: Annotated[
        bool | None,
        Query(
            description="true: only alerts that somebody judged; false: only others. Alerts to "
            "review are those with `state=resolved`, `fired=true` and `judged=false`"
        ),
    ] = None,
    team: Team = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[AlertRead]:
    """Alerts within your access scope, most recent first."""
    services.accesses.record(person.name, AuditAction.READ_ALERTS, "list of alerts")
    states = frozenset(state) if state else None
    chosen = AlertFilter(states, rule, severity, session, team, fired=fired, judged=judged)
    page = alerts.find(services.store, person.scope, chosen, cursor, limit)
    return Page([redact_for(person, alert) for alert in page.items], page.next_cursor)


@router.get("/precision")
@needs(Right.READ_SCORES)
def precision_of_rules(services: ServicesDep, person: Member) -> list[RulePrecision]:
    """Precision of each rule over all judged alerts, however they ended.

    The last judgement of each alert counts, given when it was acknowledged or resolved, or
    afterwards. Rules without a judged alert are left out.
    """
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "precision of rules")
    return [
        RulePrecision(row.rule, row.share, row.justified, row.judged, row.low, row.high)
        for row in precision.by_rule(services.store, person.scope)
    ]


@router.get("/{episode_id}")
@needs(Right.READ_SCORES)
def one_alert(services: ServicesDep, person: Member, episode_id: EpisodeId) -> AlertRead:
    """One alert with its transitions and all actions on it."""
    found = alerts.one(services.store, person.scope, episode_id)
    if found is None:
        raise HTTPException(404, "no such alert")
    services.accesses.record(person.name, AuditAction.READ_ALERTS, "alert", found.session_id)
    return redact_for(person, found)


@router.post("/{episode_id}/acknowledge")
@needs(Right.ACT)
def acknowledge(
    services: ServicesDep,
    person: Supervisor,
    episode_id: EpisodeId,
    acknowledgement: Acknowledgement,
) -> AlertRead:
    """Acknowledge an alert that has fired, with a judgement of it; 409 for others."""
    with as_http_errors():
        return alert_handling.act(
            services,
            person,
            episode_id,
            ActionKind.ACKNOWLEDGE,
            acknowledgement.reason,
            acknowledgement.note,
        )


@router.post("/{episode_id}/resolve")
@needs(Right.ACT)
def resolve(
    services: ServicesDep, person: Supervisor, episode_id: EpisodeId, resolution: Resolution
) -> AlertRead:
    """Resolve an alert that has fired, even if its condition still holds; 409 for others."""
    with as_http_errors():
        return alert_handling.act(
            services, person, episode_id, ActionKind.RESOLVE, resolution.reason, resolution.note
        )


@router.post("/{episode_id}/judge")
@needs(Right.ACT)
def judge(
    services: ServicesDep, person: Supervisor, episode_id: EpisodeId, new: Judgement
) -> AlertRead:
    """Judge an alert that has fired, also one that has ended; 409 for others.

    The alert's state does not change. A later judgement replaces it.
    """
    with as_http_errors():
        return alert_handling.act(
            services, person, episode_id, ActionKind.JUDGE, Reason(new.judgement), new.note
        )


@router.post("/{episode_id}/note")
@needs(Right.ACT)
def note(
    services: ServicesDep, person: Supervisor, episode_id: EpisodeId, new: NewNote
) -> AlertRead:
    """Add a note to an alert."""
    with as_http_errors():
        return alert_handling.act(services, person, episode_id, ActionKind.NOTE, None, new.note)
