"""A counsellor's development over months, for the counsellor and supervisors of the sessions.

Nothing is hidden here, because the readers may open every session behind it; nobody is compared
with anybody. A mean needs ``MIN_SESSIONS`` sessions.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from operator import attrgetter
from statistics import fmean
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, Response

from stream_app.analytics.questions.result import ALL, Curve, Point
from stream_app.analytics.questions.shown_curves import EPOCH, MEASURES, MONTHS, SESSIONS, WEEKS
from stream_app.analytics.views.rollup_source import SCALE
from stream_app.findings.offered_measures import offered
from stream_app.findings.trends import MIN_SESSIONS, interval
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.sessions import bundle_info
from stream_app.store.sessions.scope import Scope
from stream_app.store.work import coaching_goals, development
from stream_app.store.work.development import MeasuredSession
from stream_app.web.console.analytics import known_days
from stream_app.web.console.analytics.analytics import USUAL, Day, as_day
from stream_app.web.console.analytics.figures import figures
from stream_app.web.console.people.counsellor import elsewhere, read_counsellor
from stream_app.web.console.rendering import render
from stream_app.web.http.fields import Identifier
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Counsellor, Supervisor
from stream_app.work.goal_progress import FEWEST_DAYS, baselines

router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
DAYS: Final = 365
PERIODS: Final[Mapping[str, tuple[str, Callable[[MeasuredSession], date]]]] = {
    "month": (MONTHS, attrgetter("month")),
    "week": (WEEKS, attrgetter("week")),
}
GOAL_DAYS: Final = 84
"""How long a new goal lasts unless the form says otherwise."""
TOO_FEW: Final = "too few sessions"
Step = Annotated[Literal["month", "week"], Query()]
Measures = Annotated[list[Identifier] | None, Query(max_length=len(MEASURES))]


async def _asked(
    since: Annotated[Day, Query(alias="from")] = "",
    until: Annotated[Day, Query(alias="to")] = "",
    by: Step = "month",
    measure: Measures = None,
) -> tuple[str, str, str, Sequence[str] | None]:
    return since, until, by, measure


AskedDep = Annotated[tuple[str, str, str, Sequence[str] | None], Depends(_asked)]


@router.get("/me/development")
def me(
    request: Request,
    services: ServicesDep,
    person: Counsellor,
    asked: AskedDep,
) -> Response:
    """Show the signed-in counsellor's own development."""
    services.accesses.record(person.name, AuditAction.READ_STATISTICS, "own development")
    speaker = person.speaker or ""
    return _page(request, services, person, person.scope, speaker, asked)


@router.get("/counsellors/{pseudonym}/development")
def counsellor(
    request: Request,
    pseudonym: Identifier,
    services: ServicesDep,
    person: Supervisor,
    asked: AskedDep,
) -> Response:
    """Show one counsellor's development to a supervisor of the sessions; the read is audited."""
    found = elsewhere(request, services, person, pseudonym, "/development")
    if found is not None:
        return found
    scope = read_counsellor(services, person, pseudonym)
    return _page(request, services, person, scope, pseudonym, asked)


def _page(
    request: Request,
    services: Services,
    person: Person,
    scope: Scope,
    speaker: str,
    asked: tuple[str, str, str, Sequence[str] | None],
) -> Response:
    since, until, by, measures = asked
    offers = [name for name in offered(services.settings) if name != SESSIONS]
    if not set(measures or ()) <= set(offers):
        raise HTTPException(404)
    last = as_day(until) or datetime.now(UTC).date()
    first = as_day(since) or last - timedelta(days=DAYS)
    after = min(last, date.max - timedelta(days=1)) + timedelta(days=1)
    chosen = [name for name in offers if name in (measures or USUAL)]
    store = services.read_store
    found = development.of_counsellor(store, scope, speaker, first, after)
    axis, begins = PERIODS[by]
    known = known_days.read_of_teams(services.settings, {each.team for each in found})
    drawn = [curve for name in chosen for curve in curves(found, name, axis, begins)]
    return render(
        request,
        "development.html",
        person,
        speaker=speaker,
        name=services.people.names_of_speakers().get(speaker),
        own=person.speaker == speaker,
        sessions=len(found),
        since=first,
        until=last,
        by=by,
        chosen=chosen,
        measures=offers,
        figures=list(figures(store, drawn, TOO_FEW, known.days)),
        unmarked=known.problem,
        fewest=MIN_SESSIONS,
        goals=coaching_goals.find(services.store, person, speaker),
        today=datetime.now(UTC).date(),
        goal_ends=datetime.now(UTC).date() + timedelta(days=GOAL_DAYS),
        baselines=_baselines(services, scope, speaker),
        synthetic=bundle_info.synthetic(store),
    )


def _baselines(services: Services, scope: Scope, speaker: str) -> dict[str, float]:
    """The measures of the last four weeks, from which a new goal starts."""
    after = datetime.now(UTC).date() + timedelta(days=1)
    first = after - timedelta(days=FEWEST_DAYS)
    return baselines(development.of_counsellor(services.read_store, scope, speaker, first, after))


def curves(
    found: Sequence[MeasuredSession],
    measure: str,
    axis: str,
    begins: Callable[[MeasuredSession], date],
) -> Iterator[Curve]:
    """One curve for each bundle; ``begins``: the first day of a session's period."""
    values: dict[str, dict[date, list[float]]] = defaultdict(lambda: defaultdict(list))
    for session in found:
        if measure in session.measures:
            values[session.bundle][begins(session)].append(session.measures[measure] / SCALE)
    for bundle, periods in sorted(values.items()):
        points = [_point(first, some) for first, some in sorted(periods.items())]
        yield Curve(measure, measure, ALL, bundle, axis, MEASURES[measure], points)


def _point(begins: date, values: Sequence[float]) -> Point:
    x, label, n = float((begins - EPOCH).days), begins.isoformat(), len(values)
    if n < MIN_SESSIONS:
        return Point(x, label, None, None, None, n)
    low, high = interval(values)
    return Point(x, label, fmean(values), low, high, n)
