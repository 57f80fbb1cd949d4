"""The wall of live sessions: one card per session, highest risk first."""

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

from stream_app.contracts.events import MAX_ID_CHARS, Domain
from stream_app.contracts.scores import SessionStatus
from stream_app.store.audit import AuditAction
from stream_app.store.people import Person
from stream_app.store.queries import alerts, bundle_info, filter_choices, sessions
from stream_app.store.queries.alerts import AlertFilter, AlertRead, ShownState
from stream_app.store.queries.sessions import SessionCard
from stream_app.web.api.fields import Identifier
from stream_app.web.api.sessions import redact_for
from stream_app.web.auth import Member
from stream_app.web.console.charts import sparkline
from stream_app.web.console.rendering import live_address, render
from stream_app.web.path_segments import SESSION_ID
from stream_app.web.services import Services, ServicesDep

MAX_CARDS: Final = 500
_URGENCY: Final = (ShownState.FIRING, ShownState.ACKNOWLEDGED)
FilterValue = Annotated[str, Query(max_length=MAX_ID_CHARS, pattern=r"^[^\x00]*$")]
router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class WallCard:
    """A session on the wall; ``alert`` is its most urgent open alert."""

    session: SessionCard
    enter: float | None
    alert: AlertRead | None

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
    def sort_key(self) -> tuple[bool, float, str]:
        """Sorts cards with unanswered alerts first, then by descending risk."""
        risk = self.session.low_empathy_risk
        return not self.is_unanswered, -(-1.0 if risk is None else risk), self.session.session_id


@router.get("/")
def wall(
    request: Request,
    services: ServicesDep,
    person: Member,
    team: FilterValue = "",
    domain: FilterValue = "",
) -> Response:
    """Show live sessions, most urgent first; its updates are parts of the same audited read."""
    services.accesses.record(person.name, AuditAction.READ_SCORES, "wall")
    position = services.hub.position
    chosen = sessions.SessionFilter(SessionStatus.OPEN, team or None, domain or None)
    page = sessions.find(services.store, person.scope, chosen, limit=MAX_CARDS)
    cards = _cards(services, person, page.items)
    return render(
        request,
        "wall.html",
        person,
        address=live_address(team=team, domain=domain),
        position=position,
        broker_live=services.hub.live,
        cards=cards,
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
    return render(request, "card.html", person, card=_cards(services, person, [found])[0])


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
    cards = [
        WallCard(
            redact_for(person, session),
            info.get(session.bundle, unknown).enter,
            urgent.get(session.session_id),
        )
        for session in found
    ]
    return sorted(cards, key=lambda card: card.sort_key)
