"""The alert inbox: alerts, their reasons, and people's actions. Works without JavaScript."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Form, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.alerts import alert_actions, alert_counsellors, alerts
from stream_app.store.alerts.alerts import ActionKind, AlertFilter, AlertRead, ShownState
from stream_app.store.database.judgements import Reason
from stream_app.store.sessions.routing import read_routing
from stream_app.web import alert_handling
from stream_app.web.console import alert_evidence
from stream_app.web.console.alert_evidence import Quotes
from stream_app.web.console.counsellor_names import names_for
from stream_app.web.console.formatting import duration
from stream_app.web.console.rendering import live_address, render
from stream_app.web.console.session.session import page_of
from stream_app.web.console.sign_in.account import local_path
from stream_app.web.http.fields import EpisodeId, FormComment, FormNote, Identifier
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.live.live_hub import LiveEventKind
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Supervisor
from stream_app.work import mutes

LIVE: Final = (LiveEventKind.ALERT, LiveEventKind.ALERT_ACTION)
"""Live events that its script handles."""
PAGE_SIZE: Final = 30
MAX_COUNT: Final = 100
"""Tabs show exact counts up to this number."""
UNFIRED_PAGE_SIZE: Final = 100
REASONS: Final = {
    Reason.JUSTIFIED: "Right",
    Reason.FALSE_ALARM: "False alarm",
    Reason.NOT_NOW: "Unclear",
}
MUTE_MINUTES: Final = (15, 60, 240, 1440, 10080)
router = APIRouter(prefix="/alerts", default_response_class=HTMLResponse, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Tab:
    """One list of alerts; ``count`` is None if it exceeds ``MAX_COUNT`` or is not shown.

    ``empty``: what the list says when it has no alerts.
    """

    name: str
    title: str
    chosen: AlertFilter
    empty: str
    count: int | None = None


_RESOLVED: Final = frozenset({ShownState.RESOLVED})
TABS: Final = (
    Tab(
        "firing",
        "Firing",
        AlertFilter(states=frozenset({ShownState.FIRING})),
        "No alert is firing.",
    ),
    Tab(
        "review",
        "To review",
        AlertFilter(states=_RESOLVED, fired=True, judged=False),
        "Every alert that has ended is judged.",
    ),
    Tab(
        "acknowledged",
        "Acknowledged",
        AlertFilter(states=frozenset({ShownState.ACKNOWLEDGED}), fired=True),
        "No acknowledged alert is open.",
    ),
    Tab(
        "resolved",
        "Resolved",
        AlertFilter(states=_RESOLVED, fired=True),
        "No alert has been resolved yet.",
    ),
    Tab(
        "unfired",
        "Not fired",
        AlertFilter(fired=False),
        "No condition has held without its rule firing.",
    ),
)
UNFIRED: Final = TABS[-1]


@router.get("")
def inbox(
    request: Request,
    services: ServicesDep,
    person: Supervisor,
    state: Annotated[str, Query(max_length=20)] = "firing",
    cursor: Annotated[str | None, Query(max_length=2000)] = None,
) -> Response:
    """List alerts of one state, newest first."""
    chosen = next((tab for tab in TABS if tab.name == state), None)
    if chosen is None:
        raise HTTPException(404)
    services.accesses.record(person.name, AuditAction.READ_ALERTS, "inbox")
    position = services.hub.position
    page = alerts.find(
        services.store,
        person.scope,
        chosen.chosen,
        cursor,
        UNFIRED_PAGE_SIZE if chosen is UNFIRED else PAGE_SIZE,
    )
    return render(
        request,
        "inbox.html",
        person,
        tabs=_with_counts(services, person),
        tab=chosen,
        found=page.items,
        counsellors=_counsellors(services, page.items),
        quotes=_quotes(services, person, page.items),
        unfired=_by_rule(page.items) if chosen is UNFIRED else {},
        next_cursor=page.next_cursor,
        **_page_context(services, person, position),
    )


@router.get("/{episode_id}")
def alert_page(
    request: Request, episode_id: EpisodeId, services: ServicesDep, person: Supervisor
) -> Response:
    """Show one alert; notifications link to this page."""
    position = services.hub.position
    alert = _alert(services, person, episode_id)
    services.accesses.record(person.name, AuditAction.READ_ALERTS, "alert", alert.session_id)
    return render(
        request,
        "alert_page.html",
        person,
        alert=alert,
        counsellors=_counsellors(services, [alert]),
        quotes=_quotes(services, person, [alert]),
        **_page_context(services, person, position),
    )


@router.post("/{episode_id}/acknowledge")
def acknowledge(
    episode_id: EpisodeId,
    services: ServicesDep,
    person: Supervisor,
    reason: Annotated[Reason, Form()],
    note: FormComment = "",
    to: Annotated[str, Form()] = "/alerts",
) -> Response:
    """Acknowledge an alert, with a judgement of whether it was justified."""
    _act(services, person, episode_id, ActionKind.ACKNOWLEDGE, reason, note)
    return RedirectResponse(local_path(to), status_code=303)


@router.post("/{episode_id}/resolve")
def resolve(
    episode_id: EpisodeId,
    services: ServicesDep,
    person: Supervisor,
    reason: Annotated[Reason | Literal[""], Form()] = "",
    note: FormComment = "",
    to: Annotated[str, Form()] = "/alerts",
) -> Response:
    """Resolve an alert manually."""
    _act(services, person, episode_id, ActionKind.RESOLVE, reason or None, note)
    return RedirectResponse(local_path(to), status_code=303)


@router.post("/{episode_id}/judge")
def judge(
    episode_id: EpisodeId,
    services: ServicesDep,
    person: Supervisor,
    judgement: Annotated[Literal["justified", "false-alarm", "not-now"], Form()],
    note: FormComment = "",
    to: Annotated[str, Form()] = "/alerts",
) -> Response:
    """Judge an alert that has fired, also after it has ended."""
    _act(services, person, episode_id, ActionKind.JUDGE, Reason(judgement), note)
    return RedirectResponse(local_path(to), status_code=303)


@router.post("/{episode_id}/note")
def note(
    episode_id: EpisodeId,
    services: ServicesDep,
    person: Supervisor,
    note: FormNote,
    to: Annotated[str, Form()] = "/alerts",
) -> Response:
    """Add a note to an alert."""
    _act(services, person, episode_id, ActionKind.NOTE, None, note)
    return RedirectResponse(local_path(to), status_code=303)


@router.post("/{episode_id}/mute")
def mute(
    episode_id: EpisodeId,
    services: ServicesDep,
    person: Supervisor,
    what: Annotated[str, Form()],
    minutes: Annotated[int, Form(ge=1, le=mutes.MAX_MINUTES)],
    reason: Annotated[str, Form(max_length=200, pattern=r"^[^\x00]*$")] = "",
    to: Annotated[str, Form()] = "/alerts",
) -> Response:
    """Mute this rule in the session or the team, or everything in the session."""
    alert = _alert(services, person, episode_id)
    targets: dict[str, dict[str, Any]] = {
        "rule-session": {"rule": alert.rule, "session_id": alert.session_id},
        "session": {"session_id": alert.session_id},
        "rule-team": {"rule": alert.rule, "team": alert.team},
    }
    if what not in targets:
        raise HTTPException(422)
    until = datetime.now(UTC) + timedelta(minutes=minutes)
    with as_http_errors():
        mutes.add(services, person, **targets[what], until=until, reason=reason.strip() or None)
    return RedirectResponse(local_path(to), status_code=303)


@router.post("/mutes/{mute_id}/end")
def end_mute(
    mute_id: Identifier,
    services: ServicesDep,
    person: Supervisor,
    to: Annotated[str, Form()] = "/alerts",
) -> Response:
    """End a mute before its time."""
    alert_actions.end_mute(services.store, person.scope, mute_id)
    return RedirectResponse(local_path(to), status_code=303)


def _act(
    services: Services,
    person: Person,
    episode_id: str,
    kind: ActionKind,
    reason: Reason | None,
    note: str,
) -> None:
    with as_http_errors():
        alert_handling.act(services, person, episode_id, kind, reason, note or None)


def _page_context(services: Services, person: Person, position: str) -> dict[str, Any]:
    """Context shared by the inbox and the page of one alert."""
    return {
        "reasons": REASONS,
        "minutes": [
            (each, duration(timedelta(minutes=each).total_seconds())) for each in MUTE_MINUTES
        ],
        "mutes": alert_actions.mutes_in_force(services.store, person.scope),
        "address": live_address(*LIVE),
        "position": position,
        "broker_live": services.hub.live,
        "page_of": page_of,
        "turn_addresses": alert_evidence.turn_addresses(page_of),
        "names": names_for(services, person),
    }


def _counsellors(services: Services, found: Sequence[AlertRead]) -> dict[str, list[str]]:
    """Pseudonyms of the counsellors by alert: of several, the one who spoke."""
    about = read_routing(services.store, [alert.session_id for alert in found])
    everybody = {session_id: routing.counsellors for session_id, routing in about.items()}
    return alert_counsellors.of_alerts(services.store, found, everybody)


def _quotes(services: Services, person: Person, found: Sequence[AlertRead]) -> Quotes:
    """What was said; each session of which something is quoted is audited."""
    quotes = alert_evidence.load(services.store, person, found)
    read = list({alert.session_id: None for alert in found if quotes.get(alert.episode_id)})
    audit.record_all(services.store, person.name, AuditAction.READ_TRANSCRIPT, read, "alerts")
    return quotes


def _with_counts(services: Services, person: Person) -> list[Tab]:
    counted = alerts.counts(services.store, person.scope)
    numbers = [sum(each.number for each in counted if each.matches(tab.chosen)) for tab in TABS]
    return [
        replace(tab, count=number if number <= MAX_COUNT and tab is not UNFIRED else None)
        for tab, number in zip(TABS, numbers, strict=True)
    ]


def _by_rule(found: list[AlertRead]) -> dict[str, list[AlertRead]]:
    """Alerts by rule, rules in the order of their newest alert."""
    by_rule: dict[str, list[AlertRead]] = {}
    for alert in found:
        by_rule.setdefault(alert.rule, []).append(alert)
    return by_rule


def _alert(services: Services, person: Person, episode_id: str) -> AlertRead:
    found = alerts.one(services.store, person.scope, episode_id)
    if found is None:
        raise HTTPException(404)
    return found
