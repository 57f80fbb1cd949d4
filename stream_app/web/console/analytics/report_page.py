"""The report of two pages in the console, and as a file that needs nothing beside itself."""

from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, Response

from stream_app import __version__, extras
from stream_app.analytics.questions.suppression import MIN_CLIENTS, MIN_COUNSELLORS
from stream_app.findings.analysis_runs import AnalysisRunning, declared_attributes
from stream_app.findings.exports.files import as_attachment
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.sessions import bundle_info
from stream_app.web.console.analytics import known_days
from stream_app.web.console.analytics.analyses import CANNOT, PATIENCE, busy
from stream_app.web.console.analytics.analytics import Day, as_day, teams_of
from stream_app.web.console.analytics.asked_questions import ASKED
from stream_app.web.console.rendering import render
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import ReportReader

if TYPE_CHECKING:
    from stream_app.analytics.questions.questions import Asked
    from stream_app.analytics.questions.result import Analysis
    from stream_app.web.console.analytics.summary import Summary, Wanted

router = APIRouter(
    prefix="/analytics/report", default_response_class=HTMLResponse, include_in_schema=False
)
DAYS: Final = 182
"""Half a year, unless the form says otherwise: enough to see a trend beside a change."""
MEDIA_TYPE: Final = "text/html; charset=utf-8"


Chosen = tuple[date, date, str | None, date | None]
"""The first and the last day, the team, and the date of a change."""


async def _wanted(
    person: ReportReader,
    since: Annotated[Day, Query(alias="from")] = "",
    until: Annotated[Day, Query(alias="to")] = "",
    team: Annotated[str, Query(max_length=200)] = "",
    at: Day = "",
) -> Chosen:
    last = as_day(until) or datetime.now(UTC).date()
    first = as_day(since) or last - timedelta(days=DAYS)
    if last < first:
        raise HTTPException(422, "the last day is before the first")
    return first, last, person.chosen_team(team or None), as_day(at)


ChosenDep = Annotated[Chosen, Depends(_wanted)]


@router.get("")
def page(
    request: Request, services: ServicesDep, person: ReportReader, chosen: ChosenDep
) -> Response:
    """Show the report with a form to choose what it is about."""
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "report")
    since, until, team, at = chosen
    days = known_days.read(services.settings, team)
    summary, problem = None, None
    try:
        summary = _summary(services, chosen)
    except AnalysisRunning as running:
        return busy(request, running)
    except CANNOT as reason:
        problem = reason
    return render(
        request,
        "report_page.html",
        person,
        summary=summary,
        problem=problem,
        since=since,
        until=until,
        team=team,
        at=at if summary is None else summary.wanted.changed_at,
        teams=teams_of(person, services.read_store),
        questions=ASKED,
        unmarked=days.problem,
        version=__version__,
        synthetic=bundle_info.synthetic(services.read_store),
        fewest_clients=MIN_CLIENTS,
        fewest_counsellors=MIN_COUNSELLORS,
    )


@router.get("/file")
def file(
    request: Request, services: ServicesDep, person: ReportReader, chosen: ChosenDep
) -> Response:
    """The report as one HTML file; audited like every export."""
    try:
        summary = _summary(services, chosen)
    except AnalysisRunning as running:
        return busy(request, running)
    except CANNOT as reason:
        raise HTTPException(404, str(reason)) from None
    from stream_app.web.console.analytics import summary as summaries  # noqa: PLC0415  # imports pandas

    audit.record(services.store, person.name, AuditAction.EXPORT, detail="report")
    text = summaries.html(services.read_store, summary)
    return as_attachment(iter([text.encode()]), MEDIA_TYPE, "report.html")


def _summary(services: Services, chosen: Chosen) -> "Summary":
    extras.require_analytics()
    from stream_app.web.console.analytics import summary as summaries  # noqa: PLC0415

    return summaries.summarise(
        services.read_store, _about(services, chosen), partial(_answer, services)
    )


def _about(services: Services, chosen: Chosen) -> "Wanted":
    from stream_app.web.console.analytics.summary import Wanted  # noqa: PLC0415

    since, until, team, at = chosen
    return Wanted(
        team,
        since,
        until,
        at,
        days=known_days.read(services.settings, team).days,
        attributes=declared_attributes(services.settings, services.store),
        archive=services.settings.archive,
    )


def _answer(services: Services, question: str, asked: "Asked") -> "Analysis":
    return services.analyses.answer(services.read_store, question, asked, PATIENCE).analysis
