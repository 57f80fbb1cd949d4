"""The page of all stored sessions: search, filters, saved views. Scoped like ``GET /sessions``."""

import math
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Final
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Depends, Form, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from stream_app.contracts.events import Domain
from stream_app.store.accounts import saved_views
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.accounts.saved_views import MAX_NAME, MAX_QUERY, SavedView, TooManyViews
from stream_app.store.sessions import bundle_info, filter_choices, sessions
from stream_app.store.sessions.scope import Scope
from stream_app.store.sessions.sessions import LOW_RATING, Judged, Order, SessionFilter
from stream_app.store.stream.repository import Store
from stream_app.web.console.counsellor_names import names_for
from stream_app.web.console.overviews.recent_choices import choices
from stream_app.web.console.overviews.wall import FilterValue
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import NO_NUL
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Member
from stream_app.work.visible import session_for

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
PAGE_SIZE: Final = 50
MOST_COUNSELLORS: Final = 500
ANY_ALERT: Final = "any"
NO_ALERT: Final = "none"
OF_RULE: Final = "rule:"
"""Prefix of the choice of one rule's alerts."""
RISKS: Final = ("0.25", "0.5", "0.75", "0.9")
OUTCOMES: Final = {
    Judged.LIKE.value: "liked",
    Judged.REPLY.value: "replied to",
    Judged.FOLLOW.value: "followed",
    Judged.RATING.value: "rated",
    Judged.LOW.value: f"rated {LOW_RATING} or less",
    Judged.NONE.value: "no outcome",
}
ORDERS: Final = {
    "": (Order.START, "newest first"),
    Order.RISK.value: (Order.RISK, "highest risk first"),
    Order.INDEX.value: (Order.INDEX, "lowest index first"),
    Order.ACTIVITY.value: (Order.ACTIVITY, "last active first"),
}
PERIODS: Final = {"week": (7, "the last seven days"), "month": (28, "the last four weeks")}
"""Days back from now, so that a saved view moves on."""
REAL, SYNTHETIC = "real", "synthetic"
NOT_SAVED: Final = ("search", "counsellor")
"""An id that was searched for should not outlive its session; see ``saved_views``."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The form's fields as sent; empty: any."""

    search: str = ""
    since: str = ""
    until: str = ""
    team: str = ""
    domain: str = ""
    counsellor: str = ""
    alert: str = ""
    risk: str = ""
    outcome: str = ""
    index: str = ""
    period: str = ""
    data: str = ""
    order: str = ""

    @property
    def narrowed(self) -> int:
        """How many conditions are chosen."""
        return sum(bool(getattr(self, f.name)) for f in fields(self) if f.name != "order")

    def query(self, without: tuple[str, ...] = ()) -> str:
        """The filter as a query string, without empty fields."""
        sent = {IN_ADDRESS.get(f.name, f.name): getattr(self, f.name) for f in fields(self)}
        return urlencode({k: v for k, v in sent.items() if v and k not in without})


IN_ADDRESS: Final = {"since": "from", "until": "to"}
"""Names of fields in addresses, where they differ."""


async def _choices(
    search: FilterValue = "",
    since: Annotated[FilterValue, Query(alias="from")] = "",
    until: Annotated[FilterValue, Query(alias="to")] = "",
    team: FilterValue = "",
    domain: FilterValue = "",
    counsellor: FilterValue = "",
    alert: FilterValue = "",
    risk: FilterValue = "",
    outcome: FilterValue = "",
    index: FilterValue = "",
    period: FilterValue = "",
    data: FilterValue = "",
    order: FilterValue = "",
) -> Choices:
    return Choices(
        search.strip(),
        *(since, until, team, domain, counsellor, alert, risk, outcome, index, period, data, order),
    )


@router.get("/sessions")
def past_sessions(
    request: Request,
    services: ServicesDep,
    person: Member,
    chosen: Annotated[Choices, Depends(_choices)],
    cursor: Annotated[str | None, Query(max_length=2000)] = None,
) -> Response:
    """List sessions, newest first unless another order is chosen."""
    services.accesses.record(person.name, AuditAction.READ_SCORES, "list of sessions")
    return _page(request, services, person, chosen, cursor)


@router.post("/saved-views")
def save_view(
    request: Request,
    services: ServicesDep,
    person: Member,
    name: Annotated[str, Form(min_length=1, max_length=MAX_NAME, pattern=NO_NUL)],
    query: Annotated[str, Form(max_length=MAX_QUERY)] = "",
) -> Response:
    """Keep the current filter under a name, for this person alone."""
    chosen = _parsed(query)
    _filter(services.store, person, chosen)
    view = SavedView(name.strip(), chosen.query(NOT_SAVED), chosen.counsellor or None)
    if not view.name:
        raise HTTPException(422, "a saved view needs a name")
    try:
        saved_views.save(services.store, person.name, view)
    except TooManyViews as problem:
        return _page(request, services, person, chosen, None, str(problem))
    return RedirectResponse(f"/sessions?{chosen.query()}", status_code=303)


@router.post("/saved-views/delete")
def delete_view(
    services: ServicesDep,
    person: Member,
    name: Annotated[str, Form(min_length=1, max_length=MAX_NAME, pattern=NO_NUL)],
) -> Response:
    """Delete one of the own views."""
    saved_views.delete(services.store, person.name, name)
    return RedirectResponse("/sessions", status_code=303)


def _page(
    request: Request,
    services: Services,
    person: Person,
    chosen: Choices,
    cursor: str | None,
    problem: str | None = None,
) -> Response:
    store, scope = services.store, person.scope
    supervises = person.role is PersonRole.SUPERVISOR
    wanted = _filter(store, person, chosen)
    order, _ = ORDERS[chosen.order]
    found = sessions.find(store, scope, wanted, order, cursor, PAGE_SIZE, curves=False)
    return render(
        request,
        "sessions.html",
        person,
        problem=problem,
        chosen=chosen,
        query=chosen.query(),
        sessions=[session_for(person, card) for card in found.items],
        next_cursor=found.next_cursor,
        first_page=cursor is None,
        names=names_for(services, person),
        teams=choices(store, scope, "teams", filter_choices.teams) if scope.team is None else [],
        domains=[each.value for each in Domain],
        counsellors=choices(store, scope, "counsellors", _counsellors) if supervises else [],
        rules=choices(store, scope, "rules", filter_choices.alert_rules),
        risks=RISKS,
        outcomes=OUTCOMES,
        orders=ORDERS,
        periods=PERIODS,
        any_synthetic=bool(bundle_info.synthetic(store)),
        views=[(view, _address(view)) for view in saved_views.find(store, person.name)],
        info=bundle_info.read(store),
    )


def _counsellors(store: Store, scope: Scope) -> list[str]:
    return filter_choices.counsellors(store, scope, MOST_COUNSELLORS)


def _address(view: SavedView) -> str:
    counsellor = urlencode({"counsellor": view.counsellor}) if view.counsellor else ""
    return "/sessions?" + "&".join(part for part in (view.query, counsellor) if part)


def _parsed(query: str) -> Choices:
    names = {IN_ADDRESS.get(field.name, field.name): field.name for field in fields(Choices)}
    sent = {names[k]: v for k, v in parse_qsl(query) if k in names and "\0" not in v}
    return Choices(**sent)


def _filter(store: Store, person: Person, chosen: Choices) -> SessionFilter:
    if chosen.counsellor and person.role is PersonRole.ANALYST:
        raise HTTPException(403, "analysts may not use pseudonyms")
    if chosen.order not in ORDERS or chosen.data not in ("", REAL, SYNTHETIC):
        raise HTTPException(422, "a field of the filter has no valid value")
    simulated = bundle_info.synthetic(store) if chosen.data else frozenset()
    try:
        return SessionFilter(
            team=chosen.team or None,
            domain=chosen.domain or None,
            counsellor=chosen.counsellor or None,
            started_from=_latest(_midnight(chosen.since), _period(chosen.period)),
            started_before=_midnight(chosen.until, days=1),
            search=chosen.search or None,
            alerted={ANY_ALERT: True, NO_ALERT: False}.get(chosen.alert),
            rule=chosen.alert.removeprefix(OF_RULE) if chosen.alert.startswith(OF_RULE) else None,
            risk_from=float(chosen.risk) if chosen.risk else None,
            judged=Judged(chosen.outcome) if chosen.outcome else None,
            index_to=_finite(chosen.index),
            of_bundles=simulated if chosen.data == SYNTHETIC else None,
            not_of_bundles=simulated if chosen.data == REAL else None,
        )
    except (ValueError, OverflowError, KeyError):
        raise HTTPException(422, "a field of the filter has no valid value") from None


def _midnight(day: str, days: int = 0) -> datetime | None:
    if not day:
        return None
    begins = date.fromisoformat(day) + timedelta(days=days)
    return datetime(begins.year, begins.month, begins.day, tzinfo=UTC)


def _period(name: str) -> datetime | None:
    """When a period back from now begins.

    Raises:
        KeyError: there is no such period.
    """
    return datetime.now(UTC) - timedelta(days=PERIODS[name][0]) if name else None


def _latest(*moments: datetime | None) -> datetime | None:
    return max((each for each in moments if each is not None), default=None)


def _finite(number: str) -> float | None:
    """A number as typed; None without one.

    Raises:
        ValueError: it is no finite number.
    """
    if not number:
        return None
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(number)
    return value
