"""A counsellor's page: sessions, trend, a strength and a suggestion, disputes.

The page is about one person only: it compares and ranks no one and has no export.
"""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from stream_app.findings import agreement
from stream_app.findings.feedback import loading
from stream_app.findings.trends import MIN_SESSIONS, WEEKS, trends
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.sessions import bundle_info, sessions, turn_levels
from stream_app.store.sessions.scope import Scope
from stream_app.store.sessions.sessions import Order, SessionFilter
from stream_app.store.work import disputes
from stream_app.web.console.counsellor_names import find_counsellors
from stream_app.web.console.plots.trend_chart import chart
from stream_app.web.console.rendering import render
from stream_app.web.console.tour import tour_step
from stream_app.web.http.fields import Identifier
from stream_app.web.http.path_segments import path_segment
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Counsellor, Supervisor

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
PAGE_SIZE = 20


@router.get("/me")
def me(
    request: Request, services: ServicesDep, person: Counsellor, cursor: str | None = None
) -> Response:
    """Show the signed-in counsellor's own page."""
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "own page")
    return _page(request, services, person, person.scope, person.speaker or "", cursor)


@router.get("/counsellors/{pseudonym}")
def counsellor(
    request: Request,
    pseudonym: Identifier,
    services: ServicesDep,
    person: Supervisor,
    cursor: str | None = None,
) -> Response:
    """Show one counsellor to a supervisor of the sessions; the read is audited."""
    if (found := elsewhere(request, services, person, pseudonym)) is not None:
        return found
    scope = read_counsellor(services, person, pseudonym)
    return _page(request, services, person, scope, pseudonym, cursor)


def elsewhere(
    request: Request, services: Services, person: Person, given: str, page: str = ""
) -> Response | None:
    """None for a pseudonym; a short form or a name is redirected to the pseudonym's ``page``.

    A short form of several counsellors leads to the list of them.

    Raises:
        HTTPException: 404 if it means nobody with sessions that the person may read.
    """
    found = find_counsellors(services, person, given)
    if found == [given]:
        return None
    if not found:
        raise HTTPException(404)
    query = f"?{request.url.query}" if request.url.query else ""
    address = f"/counsellors/{path_segment(found[0])}{page}{query}"
    if len(found) > 1:
        address = f"/counsellors?{urlencode({'search': given})}"
    return RedirectResponse(address, status_code=303)


def read_counsellor(services: Services, person: Person, pseudonym: str) -> Scope:
    """The counsellor's sessions that a supervisor may read; records the read."""
    audit.record(services.store, person.name, AuditAction.READ_COUNSELLOR, counsellor=pseudonym)
    return Scope(team=person.scope.team, speaker=pseudonym)


def _page(
    request: Request,
    services: Services,
    person: Person,
    scope: Scope,
    speaker: str,
    cursor: str | None,
) -> Response:
    store = services.store
    since = datetime.now(UTC) - timedelta(weeks=WEEKS)
    found = turn_levels.of_counsellor(store, scope, speaker, since)
    sessions_used, points = loading.recent_points(store, found)
    page = sessions.find(
        store, scope, SessionFilter(), Order.START, cursor, PAGE_SIZE, curves=False
    )
    bundle = page.items[0].bundle if page.items else None
    own_trends = trends(found)
    return render(
        request,
        "counsellor.html",
        person,
        speaker=speaker,
        tour=tour_step(request, services, person) if request.url.path == "/me" else None,
        name=services.people.names_of_speakers().get(speaker),
        own=person.role is PersonRole.COUNSELLOR,
        sessions=page.items,
        next_cursor=page.next_cursor,
        first_page=cursor is None,
        sessions_used=sessions_used,
        points=points,
        trends=[(trend, chart(trend)) for trend in own_trends],
        weeks=WEEKS,
        fewest=MIN_SESSIONS,
        disputes=_disputes(services, person, scope),
        agreements=agreement.of_bundle(store, bundle) if bundle else [],
        bundle=bundle,
        simulated={turn.bundle for turn in found} & bundle_info.synthetic(store),
    )


def _disputes(services: Services, person: Person, scope: Scope) -> list[disputes.Dispute]:
    """The counsellor's own disputes; for supervisors, those about this counsellor's sessions."""
    own = person.name if person.role is PersonRole.COUNSELLOR else None
    return disputes.find(services.store, scope, person=own, limit=50)
