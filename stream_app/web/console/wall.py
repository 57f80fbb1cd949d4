"""The wall of live sessions: one card per session, highest risk first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Form, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup

from stream_app.contracts.events import MAX_ID_CHARS, Domain
from stream_app.contracts.scores import SessionStatus
from stream_app.store import pins
from stream_app.store.audit import AuditAction
from stream_app.store.interventions import TakenOver, taken_over
from stream_app.store.people import Person, PersonRole
from stream_app.store.queries import alerts, bundle_info, filter_choices, sessions
from stream_app.store.queries.alerts import AlertFilter, AlertRead, ShownState
from stream_app.store.queries.sessions import SessionCard
from stream_app.web.api.fields import Identifier
from stream_app.web.api.sessions import redact_for
from stream_app.web.auth import Member
from stream_app.web.console.account import local_path
from stream_app.web.console.charts import sparkline
from stream_app.web.console.counsellor_names import names_for
from stream_app.web.console.pseudonym_words import short_form
from stream_app.web.console.rendering import address_of, live_address, render
from stream_app.web.console.tour import tour_step
from stream_app.web.path_segments import SESSION_ID
from stream_app.web.services import Services, ServicesDep

MAX_CARDS: Final = 500
_URGENCY: Final = (ShownState.FIRING, ShownState.ACKNOWLEDGED)
FilterValue = Annotated[str, Query(max_length=MAX_ID_CHARS, pattern=r"^[^\x00]*$")]
router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class WallCard:
    """A session on the wall; ``alert`` is its most urgent open alert.

    ``leader``: the supervisor who has taken it over.
    """

    session: SessionCard
    enter: float | None
    alert: AlertRead | None
    pinned: bool = False
    leader: TakenOver | None = None

    @property
    def at_risk(self) -> bool:
        """Whether the risk is at or above the bundle's threshold."""
        risk = self.session.low_empathy_risk
        return risk is not None and self.enter is not None and risk >= self.enter

    @property
    def is_unanswered(self) -> bool:
        """Whether an unmuted alert is firing and has not been acknowledged."""
        alert = self.alert
        return alert is not None and alert.state is ShownState.FIRING and not alert.muted

    @property
    def is_acknowledged(self) -> bool:
        """Whether somebody has acknowledged the alert."""
        return self.alert is not None and self.alert.state is ShownState.ACKNOWLEDGED

    @property
    def line(self) -> Markup:
        """The risk since the start, as a sparkline."""
        return sparkline(self.session.risk_by_turn, self.enter)

    @property
    def sort_key(self) -> tuple[bool, bool, float, str]:
        """Sorts pinned cards first, then unanswered alerts, then by descending risk."""
        risk = self.session.low_empathy_risk
        descending = -(-1.0 if risk is None else risk)
        return not self.pinned, not self.is_unanswered, descending, self.session.session_id

    def matches(self, wanted: str, names: Mapping[str, str]) -> bool:
        """Whether id, team, domain or a counsellor's name contains ``wanted``, as in the script."""
        session = self.session
        who = [names.get(one) or short_form(one) for one in session.counsellors]
        said = " ".join([session.session_id, session.team or "", session.domain or "", *who])
        return wanted.casefold() in said.casefold()


@router.get("/")
def wall(
    request: Request,
    services: ServicesDep,
    person: Member,
    team: FilterValue = "",
    domain: FilterValue = "",
    search: FilterValue = "",
    group: FilterValue = "",
    density: FilterValue = "",
) -> Response:
    """Show live sessions, most urgent first; its updates are parts of the same audited read."""
    services.accesses.record(person.name, AuditAction.READ_SCORES, "wall")
    position = services.hub.position
    chosen = sessions.SessionFilter(SessionStatus.OPEN, team or None, domain or None)
    page = sessions.find(services.store, person.scope, chosen, limit=MAX_CARDS)
    cards = _cards(services, person, page.items)
    names, wanted = names_for(services, person), search.strip()
    return render(
        request,
        "wall.html",
        person,
        address=live_address(team=team, domain=domain),
        position=position,
        broker_live=services.hub.live,
        cards=cards,
        tour=tour_step(request, services, person),
        names=names,
        search=wanted,
        matching={c.session.session_id for c in cards if c.matches(wanted, names)},
        grouped=group == "team",
        groups=_by_team(cards),
        compact=density == "compact",
        wall_address=address_of(request),
        more=page.next_cursor is not None,
        team=team,
        domain=domain,
        teams=filter_choices.live_teams(services.store, person.scope)
        if person.team is None
        else [],
        domains=[each.value for each in Domain],
    )


@router.get(f"/sessions/{SESSION_ID}/card")
def card(
    request: Request, session_id: Identifier, services: ServicesDep, person: Member
) -> Response:
    """Render one card, for a session that has just begun; 204 if it has already ended."""
    found = sessions.one(services.store, person.scope, session_id)
    if found is None:
        raise HTTPException(404)
    if found.status is not SessionStatus.OPEN:
        return Response(status_code=204)
    [shown] = _cards(services, person, [found])
    return render(request, "card.html", person, card=shown, names=names_for(services, person))


@router.post(f"/sessions/{SESSION_ID}/pin")
def pin(
    session_id: Identifier,
    services: ServicesDep,
    person: Member,
    pinned: Annotated[Literal["yes", "no"], Form()],
    to: Annotated[str, Form()] = "/",
) -> Response:
    """Keep a session at the top of this person's wall, or no longer."""
    if sessions.one(services.store, person.scope, session_id) is None:
        raise HTTPException(404)
    change = pins.pin if pinned == "yes" else pins.unpin
    change(services.store, person.name, session_id)
    return RedirectResponse(local_path(to), status_code=303)


def _by_team(cards: Sequence[WallCard]) -> list[tuple[str, list[WallCard]]]:
    """Cards by team, in the order of the teams' names; those without a team last."""
    found: dict[str, list[WallCard]] = {}
    for card in cards:
        found.setdefault(card.session.team or "", []).append(card)
    return sorted(found.items(), key=lambda group: (not group[0], group[0].casefold()))


def _cards(services: Services, person: Person, found: list[SessionCard]) -> list[WallCard]:
    info = bundle_info.read(services.store)
    urgent: dict[str, AlertRead] = {}
    only_session = found[0].session_id if len(found) == 1 else None
    open_alerts = AlertFilter(states=frozenset(_URGENCY), session_id=only_session, fired=True)
    for alert in alerts.find(services.store, person.scope, open_alerts, limit=MAX_CARDS).items:
        other = urgent.get(alert.session_id)
        if other is None or _URGENCY.index(alert.state) < _URGENCY.index(other.state):
            urgent[alert.session_id] = alert
    unknown = bundle_info.BundleInfo()
    pinned = pins.find(services.store, person.name)
    leaders = taken_over(services.store, [session.session_id for session in found])
    cards = [
        WallCard(
            redact_for(person, session),
            info.get(session.bundle, unknown).enter,
            urgent.get(session.session_id),
            session.session_id in pinned,
            _shown_to(person, leaders.get(session.session_id)),
        )
        for session in found
    ]
    return sorted(cards, key=lambda card: card.sort_key)


def _shown_to(person: Person, leader: TakenOver | None) -> TakenOver | None:
    """Analysts see no names."""
    if leader is None or person.role is not PersonRole.ANALYST:
        return leader
    return replace(leader, person="")
