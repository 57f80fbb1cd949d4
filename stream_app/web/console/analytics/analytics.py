"""The analytics page: curves over months from the views that hide small cells, and their table.

Supervisors of a team see the team and its cohorts; other supervisors and analysts see any team.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from stream_app.analytics.questions import shown_curves
from stream_app.analytics.questions.shown_curves import MEASURES, SESSIONS
from stream_app.analytics.questions.suppression import MIN_CLIENTS, MIN_COUNSELLORS
from stream_app.analytics.views.shown import ALL
from stream_app.core.measures.catalogue import Use, short_names
from stream_app.findings.exports.files import as_file
from stream_app.findings.exports.formats import Format
from stream_app.findings.offered_measures import offered
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.sessions import bundle_info
from stream_app.store.stream.repository import Store
from stream_app.web.console.analytics import known_days
from stream_app.web.console.analytics.asked_questions import ASKED
from stream_app.web.console.analytics.figures import COLUMNS, Figure, figures
from stream_app.web.console.analytics.known_days import KnownDays
from stream_app.web.console.plots import band_chart
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import Identifier
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import ReportReader

router = APIRouter(
    prefix="/analytics", default_response_class=HTMLResponse, include_in_schema=False
)
WEEKS: Final = 26
USUAL: Final = (SESSIONS, *short_names(Use.SUMMARY))
"""The number of sessions first, because it says how much the others rest on."""
EVERY: Final = "every"
"""Choice of the cohorts: all of them, one line each."""
MOST_TEAMS: Final = band_chart.STYLES
"""Lines of one chart that can be told apart."""
Day = Annotated[str, Query(pattern=r"^(\d{4}-\d{2}-\d{2})?$")]


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the page shows: days are the first and the last; ``compared`` are further teams."""

    since: date
    until: date
    team: str
    compared: tuple[str, ...]
    cohort: str
    measures: tuple[str, ...]


async def _chosen(
    services: ServicesDep,
    person: ReportReader,
    since: Annotated[Day, Query(alias="from")] = "",
    until: Annotated[Day, Query(alias="to")] = "",
    team: Annotated[str, Query(max_length=200)] = "",
    cohort: Annotated[str, Query(pattern=rf"^(\d{{4}}|{EVERY})?$")] = "",
    compare: Annotated[list[str] | None, Query(max_length=MOST_TEAMS)] = None,
    measure: Annotated[list[Identifier] | None, Query(max_length=len(MEASURES))] = None,
) -> Chosen:
    measures = offered(services.settings)
    if not set(measure or ()) <= set(measures):
        raise HTTPException(404)
    chosen_team = person.chosen_team(team or None)
    others = dict.fromkeys(filter(None, compare or ()))
    for each in others:
        person.chosen_team(each)
    today = datetime.now(UTC).date()
    last = as_day(until) or today
    return Chosen(
        since=as_day(since) or last - timedelta(weeks=WEEKS),
        until=last,
        team=chosen_team or ALL,
        compared=tuple(each for each in others if each != chosen_team),
        cohort=cohort,
        measures=tuple(name for name in measures if name in (measure or USUAL)),
    )


ChosenDep = Annotated[Chosen, Depends(_chosen)]


@router.get("")
def page(
    request: Request,
    services: ServicesDep,
    person: ReportReader,
    chosen: ChosenDep,
) -> Response:
    """Show the chosen curves, each with its table."""
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "analytics")
    shown = {SESSIONS, *chosen.measures}
    chosen = replace(
        chosen, measures=tuple(name for name in offered(services.settings) if name in shown)
    )
    store = services.read_store
    drawn = list(_figures(services, chosen))
    teams = teams_of(person, store)
    return render(
        request,
        "analytics.html",
        person,
        chosen=chosen,
        figures=drawn,
        teams=teams,
        quarter=last_quarter(datetime.now(UTC).date(), teams),
        years=shown_curves.joining_years(store, chosen.team),
        measures=list(offered(services.settings)),
        all_teams=ALL,
        every=EVERY,
        questions=ASKED,
        unmarked=_known_days(services, chosen).problem,
        address=f"/analytics/table?{_query(chosen)}",
        synthetic=bundle_info.synthetic(store),
        fewest_clients=MIN_CLIENTS,
        fewest_counsellors=MIN_COUNSELLORS,
    )


@router.get("/table")
def table(
    services: ServicesDep,
    person: ReportReader,
    chosen: ChosenDep,
    wanted: Annotated[Format, Query(alias="format")] = Format.CSV,
) -> StreamingResponse:
    """The same numbers as a file; audited like every export."""
    audit.record(services.store, person.name, AuditAction.EXPORT, detail="curves")
    rows = [row for figure in _figures(services, chosen) for row in figure.rows]
    return as_file(wanted, COLUMNS, iter([rows]), "curves")


def _query(chosen: Chosen) -> str:
    """The choice without measures, as a query string."""
    team = "" if chosen.team == ALL else chosen.team
    sent = {"from": chosen.since, "to": chosen.until, "team": team, "cohort": chosen.cohort}
    named = [(name, str(value)) for name, value in sent.items() if value]
    return urlencode([*named, *(("compare", name) for name in chosen.compared)])


def teams_of(person: Person, store: Store) -> list[str]:
    """The teams that the person can choose between."""
    return [] if person.scope.team else shown_curves.teams(store)


def last_quarter(today: date, teams: Sequence[str]) -> str:
    """Query of the last finished quarter with a line for each team, as far as they fit."""
    after = date(today.year, today.month - (today.month - 1) % 3, 1)
    last = after - timedelta(days=1)
    first = date(last.year, last.month - 2, 1)
    shown = teams if len(teams) <= MOST_TEAMS else ()
    named = [("from", str(first)), ("to", str(last)), *(("team", name) for name in shown[:1])]
    return urlencode([*named, *(("compare", name) for name in shown[1:])])


def as_day(text: str) -> date | None:
    """The day, or None if the field is empty.

    Raises:
        HTTPException: 422 if there is no such day.
    """
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise HTTPException(422, "no such day") from None


def _known_days(services: Services, chosen: Chosen) -> KnownDays:
    return known_days.read(services.settings, None if chosen.team == ALL else chosen.team)


def _figures(services: Services, chosen: Chosen) -> Iterator[Figure]:
    store = services.read_store
    days = _known_days(services, chosen).days
    until = min(chosen.until, date.max - timedelta(days=1)) + timedelta(days=1)
    for name in chosen.measures:
        if chosen.cohort:
            year = None if chosen.cohort == EVERY else int(chosen.cohort)
            curves = shown_curves.cohorts(store, name, chosen.since, until, year, chosen.team)
        else:
            curves = [
                curve
                for team in (chosen.team, *chosen.compared)
                for curve in shown_curves.weekly(store, name, team, chosen.since, until)
            ]
        yield from figures(store, curves, days=days)
