"""A page for each of the seven analyses: what is asked, the answer in a sentence, plot and table.

The figures are those of ``rapport analyse``. A change of measure or group, and zooming, shows
another part of the same analysis.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request
from fastapi.responses import HTMLResponse, Response

from stream_app import extras
from stream_app.analytics.questions.attributes import AttributesError, NotEnabled
from stream_app.analytics.questions.marked_days import TRAINING, MarkedDay, trained_team
from stream_app.analytics.questions.result import ALL, Analysis, Curve, Estimate
from stream_app.analytics.questions.shown_curves import EPOCH, MONTHS, WEEKS
from stream_app.analytics.questions.suppression import MIN_CLIENTS, MIN_COUNSELLORS
from stream_app.errors import RapportError
from stream_app.extras import ExtraMissing
from stream_app.findings import analysis_files
from stream_app.findings.analysis_files import MEDIA_TYPES, FileFormat
from stream_app.findings.analysis_runs import AnalysisRunning, Computed, declared_attributes
from stream_app.findings.exports.files import as_attachment
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.lifecycle.archived import ArchiveError
from stream_app.store.sessions import bundle_info
from stream_app.store.sessions.scope import Scope
from stream_app.web.console.analytics import known_days
from stream_app.web.console.analytics.analytics import Day, as_day, teams_of
from stream_app.web.console.analytics.asked_questions import ASKED, AskedQuestion
from stream_app.web.console.analytics.figures import Figure, figures
from stream_app.web.console.analytics.known_days import KnownDays
from stream_app.web.console.error_pages import error_page
from stream_app.web.console.plots.interval_chart import IntervalChart
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import Identifier
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import ReportReader

if TYPE_CHECKING:
    from stream_app.analytics.questions.questions import Asked

router = APIRouter(
    prefix="/analytics", default_response_class=HTMLResponse, include_in_schema=False
)
PATIENCE: Final = 20.0
"""Seconds that a page waits for an analysis of somebody else."""
RETRY_AFTER: Final = "30"
EVERY: Final = "every"
"""Choice of the measure: all of them together."""
CANNOT: Final = (NotEnabled, AttributesError, ArchiveError, ExtraMissing)
"""Why an installation cannot answer a question; the page says what to do."""
MOST_DAYS: Final = 3650


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a page shows.

    ``since`` and ``until``: the first and the last day, None for all; ``first`` and ``last``: the
    days to which curves are zoomed; ``stay``: None for the analysis' own minimum. ``trained``: the
    team that the date concerns, empty for all, None if nobody chose.
    """

    since: date | None
    until: date | None
    team: str | None
    measure: str
    group: str
    at: date | None
    stay: int | None
    calendar: bool
    first: date | None
    last: date | None
    trained: str | None


async def _chosen(
    person: ReportReader,
    since: Annotated[Day, Query(alias="from")] = "",
    until: Annotated[Day, Query(alias="to")] = "",
    team: Annotated[str, Query(max_length=200)] = "",
    measure: Annotated[str, Query(max_length=200)] = "",
    group: Annotated[str, Query(max_length=200)] = "",
    at: Day = "",
    stay: Annotated[str, Query(pattern=r"^\d{0,4}$")] = "",
    calendar: bool = False,
    first: Day = "",
    last: Day = "",
    trained: Annotated[str | None, Query(max_length=200)] = None,
) -> Chosen:
    if stay and int(stay) > MOST_DAYS:
        raise HTTPException(422, f"a stay has at most {MOST_DAYS} days")
    return Chosen(
        since=as_day(since),
        until=as_day(until),
        team=person.chosen_team(team or None),
        measure=measure,
        group=group,
        at=as_day(at),
        stay=int(stay) if stay else None,
        calendar=calendar,
        first=as_day(first),
        last=as_day(last),
        trained=trained,
    )


ChosenDep = Annotated[Chosen, Depends(_chosen)]
Question = Annotated[Identifier, Path()]


@dataclass(frozen=True, slots=True)
class TableRow:
    """An estimate in words; ``chance``: empty where nothing is tested."""

    label: str
    value: str
    interval: str
    chance: str
    p: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Shown:
    """The part of an analysis that a page shows."""

    sentence: str
    rows: list[TableRow]
    measure: str
    group: str
    plot: IntervalChart | None
    figures: list[Figure]
    measures: list[str]
    groups: list[str]


@router.get("/{question}")
def page(
    request: Request,
    services: ServicesDep,
    person: ReportReader,
    question: Question,
    chosen: ChosenDep,
) -> Response:
    """Show the answer to a question; why there is none, if the installation cannot give it."""
    asked = _question(question)
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, f"analysis {question}")
    known = known_days.read(services.settings, chosen.team)
    chosen = _with_date(question, chosen, known.days)
    try:
        found = _computed(services, question, chosen)
    except AnalysisRunning as problem:
        return busy(request, problem)
    except CANNOT as problem:
        return _render(request, services, person, question, asked, chosen, known, None, problem)
    return _render(request, services, person, question, asked, chosen, known, found, None)


@router.get("/{question}/table")
def table(
    request: Request,
    services: ServicesDep,
    person: ReportReader,
    question: Question,
    chosen: ChosenDep,
    wanted: Annotated[FileFormat, Query(alias="format")] = FileFormat.CSV,
) -> Response:
    """The whole analysis as a file; audited like every export."""
    _question(question)
    known = known_days.read(services.settings, chosen.team)
    chosen = _with_date(question, chosen, known.days)
    try:
        found = _computed(services, question, chosen)
    except AnalysisRunning as problem:
        return busy(request, problem)
    except CANNOT as problem:
        raise HTTPException(404, str(problem)) from None
    audit.record(services.store, person.name, AuditAction.EXPORT, detail=f"analysis {question}")
    mark = "\ufeff" if wanted is FileFormat.CSV else ""  # for spreadsheets
    text = mark + analysis_files.encoded(found.analysis, wanted)
    return as_attachment(iter([text.encode()]), MEDIA_TYPES[wanted], f"{question}.{wanted.value}")


def _question(name: str) -> AskedQuestion:
    if name not in ASKED:
        raise HTTPException(404)
    return ASKED[name]


def busy(request: Request, problem: AnalysisRunning) -> Response:
    """The page for somebody whose analysis has to wait too long for another one."""
    response = error_page(
        request,
        503,
        str(problem),
        title="Another analysis is running",
        advice="Nothing is lost. Load this page again in half a minute.",
    )
    response.headers["Retry-After"] = RETRY_AFTER
    return response


def _with_date(question: str, chosen: Chosen, days: Sequence[MarkedDay]) -> Chosen:
    """Fill in a date and whom it concerns, where a question asks for them and nobody chose.

    The date is that of the last training. Its team, if it had one, is compared with the others.
    """
    if question != "service-levels":
        return replace(chosen, trained=None)
    today = datetime.now(UTC).date()
    past = [
        each.day
        for each in days
        if each.kind == TRAINING
        and (chosen.since or date.min) < each.day <= min(chosen.until or today, today)
    ]
    at = chosen.at or (past[-1] if past else None)
    if at is None or chosen.team is not None:
        return replace(chosen, at=at, trained=None)
    trained = trained_team(days, at) if chosen.trained is None else chosen.trained
    return replace(chosen, at=at, trained=trained)


def _computed(services: Services, question: str, chosen: Chosen) -> Computed:
    extras.require_analytics()
    from stream_app.analytics.questions.questions import QUESTIONS  # noqa: PLC0415  # imports pandas

    known = QUESTIONS[question].measures
    if known and chosen.measure and chosen.measure not in known:
        raise HTTPException(404)
    measure = chosen.measure or ASKED[question].measure
    asked = _asked(services, chosen, (measure,) if known else ())
    return services.analyses.answer(services.read_store, question, asked, PATIENCE)


def _asked(services: Services, chosen: Chosen, measures: tuple[str, ...]) -> "Asked":
    from stream_app.analytics.questions.questions import Asked  # noqa: PLC0415

    asked = Asked(
        scope=Scope(team=chosen.team),
        since=_midnight(chosen.since),
        until=_midnight(after(chosen.until)),
        measures=measures,
        calendar=chosen.calendar,
        at=_midnight(chosen.at),
        trained=chosen.trained or None,
        attributes=declared_attributes(services.settings, services.store),
        archive=services.settings.archive,
        restricted=services.settings.restrictions.everywhere,
    )
    return asked if chosen.stay is None else replace(asked, fewest_days=chosen.stay)


def after(day: date | None) -> date | None:
    """The day after the last one; the last day of all has none."""
    if day is None or day == date.max:
        return None
    return day + timedelta(days=1)


def _midnight(day: date | None) -> datetime | None:
    return None if day is None else datetime.combine(day, time(), UTC)


def _render(
    request: Request,
    services: Services,
    person: Person,
    question: str,
    asked: AskedQuestion,
    chosen: Chosen,
    known: KnownDays,
    found: Computed | None,
    problem: RapportError | None,
) -> Response:
    store = services.read_store
    marked = _marked(question, chosen, known.days)
    shown = None if found is None else _shown(services, question, found.analysis, chosen, marked)
    return render(
        request,
        "analysis.html",
        person,
        name=question,
        asked=asked,
        questions=ASKED,
        chosen=chosen,
        unmarked=known.problem,
        days=[each for each in known.days if asked.at and each.day <= datetime.now(UTC).date()],
        computed=found,
        analysis=None if found is None else found.analysis,
        shown=shown,
        problem=problem,
        teams=teams_of(person, store),
        stay=_stay(chosen) if asked.stay and found is not None else None,
        every=EVERY,
        query=_query(chosen),
        unzoomed=_query(replace(chosen, first=None, last=None)),
        synthetic=bundle_info.synthetic(store),
        fewest_clients=MIN_CLIENTS,
        fewest_counsellors=MIN_COUNSELLORS,
    )


def _stay(chosen: Chosen) -> int:
    from stream_app.analytics.questions.questions import Asked  # noqa: PLC0415

    return Asked().fewest_days if chosen.stay is None else chosen.stay


def _marked(question: str, chosen: Chosen, days: Sequence[MarkedDay]) -> list[MarkedDay]:
    """The known days and the chosen date, which is marked once."""
    if chosen.at is None or any(each.day == chosen.at for each in days):
        return list(days)
    name = "the chosen date" if question == "service-levels" else "begin of the current period"
    return [*days, MarkedDay(chosen.at, "other", name)]


def _shown(
    services: Services,
    question: str,
    analysis: Analysis,
    chosen: Chosen,
    days: Sequence[MarkedDay],
) -> Shown:
    from stream_app.web.console.analytics import answers  # noqa: PLC0415  # imports pandas

    measures = _measures(question, analysis)
    measure = _measure(question, chosen, measures)
    of_measure = [each for each in analysis.estimates if measure in (EVERY, each.measure)]
    drawn = [each for each in analysis.curves if measure in (EVERY, each.measure)]
    groups = _groups(of_measure, drawn)
    if ASKED[question].stay and len(groups) == 1:
        groups = []  # the only cohort is everyone
        of_measure = [each for each in of_measure if each.group == ALL]
    group = chosen.group if chosen.group in groups else ""
    estimates = [each for each in of_measure if group in ("", each.group)]
    shown_curves = _figures(services, drawn, group, chosen, days)
    plot = answers.plot(question, estimates, one_measure=measure != EVERY)
    if plot is not None and shown_curves and len(plot.lines) < 2:
        plot = None  # the sentence has it, and the curve says more
    what = next((_happened(each, chosen) for each in days if each.day == chosen.at), "")
    return Shown(
        sentence=answers.sentence(
            analysis,
            estimates,
            at=chosen.at,
            what="" if what.startswith("the chosen") else what,
            trained=chosen.trained or "",
        ),
        plot=plot,
        figures=shown_curves,
        rows=_rows(estimates, one_measure=measure != EVERY),
        measure=measure,
        group=group,
        measures=measures,
        groups=groups,
    )


def _happened(day: MarkedDay, chosen: Chosen) -> str:
    """The event in words; without its team where the sentence names it."""
    return (replace(day, team="") if day.team == chosen.trained else day).words


def _rows(estimates: Sequence[Estimate], *, one_measure: bool) -> list[TableRow]:
    from stream_app.web.console.analytics import answers  # noqa: PLC0415

    return [
        TableRow(
            label=answers.label(each, one_measure=one_measure),
            value="–" if each.value is None else answers.number(each.value),
            interval=answers.interval(each) or "–",
            chance=answers.chance(each),
            p=answers.p_value(each) or "–",
            estimate=each,
        )
        for each in estimates
    ]


def _measures(question: str, analysis: Analysis) -> list[str]:
    """Measures that can be chosen: the question's, or those of its result."""
    from stream_app.analytics.questions.questions import QUESTIONS  # noqa: PLC0415

    known = QUESTIONS[question].measures
    return list(known or dict.fromkeys(each.measure for each in analysis.estimates))


def _measure(question: str, chosen: Chosen, measures: Sequence[str]) -> str:
    asked = ASKED[question]
    if chosen.measure in measures or (asked.every and chosen.measure == EVERY):
        return chosen.measure
    return EVERY if asked.every else asked.measure or next(iter(measures), "")


def _groups(estimates: Sequence[Estimate], drawn: Sequence[Curve]) -> list[str]:
    named = [*(each.group for each in estimates), *(each.group for each in drawn)]
    return [name for name in dict.fromkeys(named) if name != ALL]


def _figures(
    services: Services,
    drawn: Sequence[Curve],
    group: str,
    chosen: Chosen,
    days: Sequence[MarkedDay],
) -> list[Figure]:
    """The curves of the chosen group; of everyone alone where there is one group only."""
    names = {curve.group for curve in drawn if curve.group != ALL}
    wanted = {group} if group in names else {ALL} if len(names) < 2 else {ALL, *names}
    curves = [_zoomed(curve, chosen) for curve in drawn if curve.group in wanted]
    return list(figures(services.read_store, curves, days=days))


def _zoomed(curve: Curve, chosen: Chosen) -> Curve:
    """The points within the days, of a curve by date, which has its measure as the title."""
    named = replace(curve, title=curve.measure) if curve.axis in (WEEKS, MONTHS) else curve
    if curve.axis not in (WEEKS, MONTHS) or not (chosen.first or chosen.last):
        return named
    low = float(((chosen.first or date.min) - EPOCH).days)
    high = float(((chosen.last or date.max) - EPOCH).days)
    return replace(named, points=[point for point in curve.points if low <= point.x <= high])


def _query(chosen: Chosen) -> str:
    """The choice as a query string, for links and downloads."""
    sent = {
        "from": chosen.since,
        "to": chosen.until,
        "team": chosen.team,
        "measure": chosen.measure,
        "group": chosen.group,
        "at": chosen.at,
        "trained": chosen.trained,
        "stay": chosen.stay,
        "calendar": "true" if chosen.calendar else "",
        "first": chosen.first,
        "last": chosen.last,
    }
    return urlencode(
        [
            (name, str(value))
            for name, value in sent.items()
            if value is not None and (value != "" or name == "trained")
        ]
    )
