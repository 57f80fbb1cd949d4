"""The wall of live sessions: one card per session, the most urgent first.

It shows the first ``FIRST_CARDS``, and more on request: nobody reads hundreds of cards, and each
costs the reader's browser and the server as much as the first.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Form, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup

from stream_app.contracts.events import MAX_ID_CHARS, Domain
from stream_app.contracts.scores import SessionStatus
from stream_app.store.accounts import pins
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.alerts import open_alerts
from stream_app.store.alerts.alerts import ShownState
from stream_app.store.alerts.interventions import TakenOver, taken_over
from stream_app.store.alerts.open_alerts import OpenAlert
from stream_app.store.sessions import bundle_info, filter_choices, live_sessions, sessions
from stream_app.store.sessions.live_sessions import LiveSession
from stream_app.store.sessions.sessions import SessionCard, SessionFilter
from stream_app.web.console.counsellor_names import names_for
from stream_app.web.console.overviews.recent_choices import choices
from stream_app.web.console.plots.charts import sparkline
from stream_app.web.console.pseudonym_words import short_form
from stream_app.web.console.rendering import address_of, live_address, render
from stream_app.web.console.sign_in.account import local_path
from stream_app.web.console.tour import tour_step
from stream_app.web.http.fields import Identifier
from stream_app.web.http.path_segments import SESSION_ID
from stream_app.web.live.live_hub import LiveEventKind
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Member
from stream_app.work.visible import session_for

FIRST_CARDS: Final = 50
"""Cards of a page that nobody has asked for more of; "Show more" doubles their number."""
MAX_CARDS: Final = 500
SEARCHED: Final = 5000
"""A search looks at so many of the most urgent sessions."""
LIVE: Final = (
    LiveEventKind.SESSION,
    LiveEventKind.ALERT,
    LiveEventKind.ALERT_ACTION,
    LiveEventKind.INTERVENTION,
)
"""What its script handles."""
FilterValue = Annotated[str, Query(max_length=MAX_ID_CHARS, pattern=r"^[^\x00]*$")]
router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class WallCard:
    """A session on the wall; ``alerts``: its open ones, the most urgent first.

    ``leader``: the supervisor who has taken it over.
    """

    session: SessionCard
    enter: float | None
    alerts: list[OpenAlert]
    pinned: bool = False
    leader: TakenOver | None = None

    @property
    def at_risk(self) -> bool:
        """Whether the risk is at or above the bundle's threshold."""
        risk = self.session.low_empathy_risk
        return risk is not None and self.enter is not None and risk >= self.enter

    @property
    def is_open(self) -> bool:
        """Whether it has not ended since the list was read."""
        return self.session.status is SessionStatus.OPEN

    @property
    def is_unanswered(self) -> bool:
        """Whether an unmuted alert is firing and has not been acknowledged."""
        return any(alert.is_unanswered for alert in self.alerts)

    @property
    def is_acknowledged(self) -> bool:
        """Whether somebody has acknowledged an alert, and no other one waits."""
        return not self.is_unanswered and any(
            alert.state is ShownState.ACKNOWLEDGED for alert in self.alerts
        )

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


@dataclass(frozen=True, slots=True)
class Wall:
    """``total``: the number of live sessions, or of those that match; ``matching``: their ids.

    ``searched``: the cards are those that match a search, of more sessions than a page shows.
    """

    cards: list[WallCard]
    total: int
    matching: Collection[str]
    searched: bool = False

    @property
    def partial(self) -> bool:
        """Whether there are sessions without a card."""
        return self.searched or self.total > len(self.cards)


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
    shown: Annotated[int, Query(ge=1, le=MAX_CARDS)] = FIRST_CARDS,
) -> Response:
    """Show live sessions, most urgent first; its updates are parts of the same audited read."""
    services.accesses.record(person.name, AuditAction.READ_SCORES, "wall")
    position = services.hub.position
    names, wanted = names_for(services, person), search.strip()
    found = _wall(services, person, _chosen(team, domain), wanted, names, shown)
    more = min(MAX_CARDS, 2 * shown)
    return render(
        request,
        "wall.html",
        person,
        address=live_address(*LIVE, team=team, domain=domain),
        position=position,
        broker_live=services.hub.live,
        cards=found.cards,
        wall=found,
        more=min(more, found.total) - len(found.cards),
        more_address=_with_shown(request, more),
        total_address=f"/live-total?{urlencode({'team': team, 'domain': domain})}",
        tour=tour_step(request, services, person),
        names=names,
        search=wanted,
        matching=found.matching,
        grouped=group == "team",
        groups=_by_team(found.cards),
        compact=density == "compact",
        wall_address=address_of(request),
        shown=shown if shown != FIRST_CARDS else None,
        team=team,
        domain=domain,
        teams=choices(services.store, person.scope, "live teams", filter_choices.live_teams)
        if person.team is None
        else [],
        domains=[each.value for each in Domain],
    )


@router.get("/live-total")
def live_total(
    request: Request,
    services: ServicesDep,
    person: Member,
    team: FilterValue = "",
    domain: FilterValue = "",
) -> Response:
    """Render the number of live sessions, for a wall that does not show all of them."""
    total = live_sessions.count(services.store, person.scope, _chosen(team, domain))
    return render(request, "wall_total.html", person, total=total)


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
    firing = open_alerts.by_session(services.store, person.scope, session_id)
    pinned = pins.find(services.store, person.name)
    [shown] = _cards(services, person, [found], firing, pinned)
    names = names_for(services, person, found.counsellors)
    return render(request, "card_alone.html", person, card=shown, names=names)


@router.post(f"/sessions/{SESSION_ID}/pin")
def pin(
    session_id: Identifier,
    services: ServicesDep,
    person: Member,
    pinned: Annotated[Literal["yes", "no"], Form()],
    to: Annotated[str, Form()] = "/",
) -> Response:
    """Keep a session at the top of this person's wall, or no longer."""
    if sessions.bundle_of(services.store, person.scope, session_id) is None:
        raise HTTPException(404)
    change = pins.pin if pinned == "yes" else pins.unpin
    change(services.store, person.name, session_id)
    return RedirectResponse(local_path(to), status_code=303)


def _chosen(team: str, domain: str) -> SessionFilter:
    return SessionFilter(SessionStatus.OPEN, team or None, domain or None)


def _with_shown(request: Request, shown: int) -> str:
    """The page's address, with another number of cards."""
    return f"/?{request.url.include_query_params(shown=shown).query}"


def _wall(
    services: Services,
    person: Person,
    chosen: SessionFilter,
    wanted: str,
    names: Mapping[str, str],
    shown: int,
) -> Wall:
    """The cards of a page.

    If all sessions fit on it, a search marks those that match, so that the script can show the
    others again; else it chooses them from all sessions.
    """
    store, scope = services.store, person.scope
    pinned = pins.find(store, person.name)
    firing = open_alerts.by_session(store, scope)
    unanswered = [key for key, all_of in firing.items() if any(a.is_unanswered for a in all_of)]
    found, total = live_sessions.by_urgency(
        store,
        scope,
        chosen,
        pinned=pinned,
        unanswered=unanswered,
        limit=max(SEARCHED, shown) if wanted else shown,
    )
    matching = {each.session_id for each in found}
    searched = bool(wanted) and total > shown
    if wanted:
        if person.role is not PersonRole.ANALYST:
            found = live_sessions.with_counsellors(store, found)
        matching = {each.session_id for each in found if _matches(each, wanted, names)}
    if searched:
        found, total = [each for each in found if each.session_id in matching], len(matching)
    ids = [each.session_id for each in found[:shown]]
    cards = _cards(services, person, sessions.of_ids(store, scope, ids), firing, pinned)
    return Wall([card for card in cards if card.is_open], total, matching, searched)


def _matches(session: LiveSession, wanted: str, names: Mapping[str, str]) -> bool:
    """Whether id, team, domain or a counsellor's name contains ``wanted``, as in the script.

    Analysts see no counsellors, so their sessions come without.
    """
    who = [names.get(one) or short_form(one) for one in session.counsellors]
    said = " ".join([session.session_id, session.team or "", session.domain or "", *who])
    return wanted.casefold() in said.casefold()


def _by_team(cards: Sequence[WallCard]) -> list[tuple[str, list[WallCard]]]:
    """Cards by team, in the order of the teams' names; those without a team last."""
    found: dict[str, list[WallCard]] = {}
    for card in cards:
        found.setdefault(card.session.team or "", []).append(card)
    return sorted(found.items(), key=lambda group: (not group[0], group[0].casefold()))


def _cards(
    services: Services,
    person: Person,
    found: Sequence[SessionCard],
    firing: Mapping[str, list[OpenAlert]],
    pinned: Collection[str],
) -> list[WallCard]:
    leaders = taken_over(services.store, [session.session_id for session in found])
    cards = [
        WallCard(
            session_for(person, session),
            bundle_info.one(services.store, session.bundle).enter,
            firing.get(session.session_id, []),
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
