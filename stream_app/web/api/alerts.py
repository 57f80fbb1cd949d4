"""Alerts: the inbox, one alert with its transitions, and what people do to it."""

from dataclasses import dataclass, replace
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, ConfigDict, Field

from stream_app.contracts.scores import Severity
from stream_app.store import alert_actions
from stream_app.store.alert_actions import Reason
from stream_app.store.people import Person, PersonRole
from stream_app.store.reading import alerts, precision
from stream_app.store.reading.alerts import ActionKind, AlertFilter, AlertRead, ShownState
from stream_app.store.reading.facts import Facts, look_up
from stream_app.store.reading.pages import Page
from stream_app.web.api.fields import Cursor, EpisodeId, Identifier, Limit, Note, Team
from stream_app.web.auth import Member, Supervisor
from stream_app.web.live import ActionTold
from stream_app.web.services import Services, Wired

WITHHELD: Final = "withheld"
router = APIRouter(prefix="/alerts", tags=["alerts"])


class Judgement(BaseModel):
    """Why an alert is acknowledged."""

    model_config = ConfigDict(extra="forbid")

    reason: Annotated[
        Reason,
        Field(description="`justified…` counts for the rule's precision, `false-alarm` against it"),
    ]
    note: Annotated[Note | None, Field(description="For colleagues; leaves the service never")] = (
        None
    )


class Closing(BaseModel):
    """Why an alert is resolved by hand."""

    model_config = ConfigDict(extra="forbid")

    reason: Annotated[Reason | None, Field(description="As in acknowledging")] = None
    note: Note | None = None


class Remark(BaseModel):
    """A note on an alert."""

    model_config = ConfigDict(extra="forbid")

    note: Note


@dataclass(frozen=True, slots=True)
class RulePrecision:
    """Of the alerts of a rule that people judged, how many were justified."""

    rule: str
    precision: Annotated[float, Field(ge=0, le=1, description="Justified of judged")]
    justified: Annotated[int, Field(ge=0)]
    judged: Annotated[int, Field(ge=1, description="n; `not-now` does not count")]
    low: Annotated[float, Field(ge=0, le=1, description="95 % Wilson interval")]
    high: Annotated[float, Field(ge=0, le=1)]


@router.get("")
def list_alerts(
    services: Wired,
    person: Member,
    state: Annotated[
        list[ShownState] | None, Query(description="Only these states; may be repeated")
    ] = None,
    rule: Annotated[Identifier | None, Query(description="Only this rule")] = None,
    severity: Annotated[Severity | None, Query(description="Only this severity")] = None,
    session: Annotated[Identifier | None, Query(description="Only this session")] = None,
    team: Team = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[AlertRead]:
    """Alerts, the one that began last first."""
    states = frozenset(state) if state else None
    chosen = AlertFilter(states, rule, severity, session, team)
    page = alerts.find(services.store, person.scope, chosen, cursor, limit)
    return Page([shown(person, alert) for alert in page.items], page.next_cursor)


@router.get("/precision")
def precision_of_rules(services: Wired, person: Member) -> list[RulePrecision]:
    """How often each rule was right, by the reasons given in acknowledging and resolving.

    Of several judgements on one alert the last counts; rules nobody has judged are left out.
    """
    return [
        RulePrecision(row.rule, row.share, row.justified, row.judged, row.low, row.high)
        for row in precision.by_rule(services.store, person.scope)
    ]


@router.get("/{episode_id}")
def one_alert(services: Wired, person: Member, episode_id: EpisodeId) -> AlertRead:
    """One alert with all transitions of the rule and all that people did."""
    found = alerts.one(services.store, person.scope, episode_id)
    if found is None:
        raise HTTPException(404, "there is no such alert")
    return shown(person, found)


@router.post("/{episode_id}/acknowledge")
def acknowledge(
    services: Wired, person: Supervisor, episode_id: EpisodeId, judgement: Judgement
) -> AlertRead:
    """Say that somebody looks after it, and whether it was right to call."""
    return _did(
        services, person, episode_id, ActionKind.ACKNOWLEDGE, judgement.reason, judgement.note
    )


@router.post("/{episode_id}/resolve")
def resolve(
    services: Wired, person: Supervisor, episode_id: EpisodeId, closing: Closing
) -> AlertRead:
    """Close it by hand, whatever the rule says."""
    return _did(services, person, episode_id, ActionKind.RESOLVE, closing.reason, closing.note)


@router.post("/{episode_id}/note")
def note(services: Wired, person: Supervisor, episode_id: EpisodeId, remark: Remark) -> AlertRead:
    """Leave a note."""
    return _did(services, person, episode_id, ActionKind.NOTE, None, remark.note)


def shown(person: Person, alert: AlertRead) -> AlertRead:
    """An alert as this person may see it: notes are between supervisors."""
    if person.role is PersonRole.SUPERVISOR:
        return alert
    named = person.role is not PersonRole.ANALYST
    actions = [
        replace(action, note=None, person=action.person if named else WITHHELD)
        for action in alert.actions
    ]
    return replace(alert, actions=actions)


def _did(
    services: Services,
    person: Person,
    episode_id: str,
    kind: ActionKind,
    reason: Reason | None,
    note: str | None,
) -> AlertRead:
    action, alert = alert_actions.act(
        services.store, person.scope, episode_id, kind, person.name, reason, note
    )
    told = ActionTold(
        action_id=action.action_id,
        episode_id=episode_id,
        session_id=alert.session_id,
        kind=kind.value,
        reason=action.reason,
        person=person.name,
        at=action.at.isoformat(),
        state=alert.state.value,
    )
    found = look_up(services.store, [alert.session_id])
    services.hub.tell(told, found.get(alert.session_id, Facts()))
    services.publisher.tell(
        services.settings.alert_action_topic,
        alert.session_id.encode(),
        msgspec.json.encode(told),
    )
    return alert
