"""All curves, tables and analyses of a team or the whole platform, as one printable HTML file.

Static SVG and no script, so it looks the same on paper and needs nothing beside itself. Weekly
curves come from the views that hide small cells, as on the console's page; the analyses hide theirs
by the same thresholds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Final

from stream_app import __version__
from stream_app.analytics.questions import over_time, questions, service_levels, shown_curves
from stream_app.analytics.questions.marked_days import MarkedDay
from stream_app.analytics.questions.questions import Asked
from stream_app.analytics.questions.result import Analysis, Curve
from stream_app.analytics.questions.shown_curves import MEASURES, SESSIONS
from stream_app.analytics.questions.suppression import MIN_CLIENTS, MIN_COUNSELLORS
from stream_app.analytics.views.shown import ALL
from stream_app.core.measures.catalogue import Use, short_names
from stream_app.core.measures.heads import PERCEIVED
from stream_app.findings import agreement_words
from stream_app.store.sessions import bundle_info
from stream_app.store.sessions.scope import Scope
from stream_app.store.stream.repository import Store
from stream_app.web.console.analytics.figures import NOT_RATED, Figure, figures
from stream_app.web.console.rendering import STATIC, templates

STYLES: Final = ("figures.css", "report.css")
SERVICE: Final = ("first_answer", "looked_at", *service_levels.OF_ALERTS, service_levels.PRECISION)
"""The service levels that the weekly curves do not have."""
OVER_TIME: Final = short_names(Use.SUMMARY)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the report is about.

    ``team``: None for all; days are the first and the last; ``fewest_days``: minimum stay;
    ``archive``: the folder of archived months. ``days``: to be marked on curves.
    """

    team: str | None
    since: date
    until: date
    fewest_days: int = over_time.FEWEST_DAYS
    archive: Path | None = None
    days: Sequence[MarkedDay] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """Figures under a heading; ``analysis``: with its estimates, where there is one."""

    title: str
    about: str
    figures: list[Figure]
    analysis: Analysis | None = None


def html(store: Store, wanted: Wanted) -> str:
    """The report as one HTML document."""
    sections = [*_curves(store, wanted), *_analyses(store, wanted)]
    return templates.env.get_template("report.html").render(
        wanted=wanted,
        sections=sections,
        agreement=_agreement(sections),
        styles="\n".join((STATIC / name).read_text("utf-8") for name in STYLES),
        made_at=datetime.now(UTC),
        version=__version__,
        synthetic=bundle_info.synthetic(store),
        simulated=_bundles(sections) & bundle_info.synthetic(store),
        fewest_clients=MIN_CLIENTS,
        fewest_counsellors=MIN_COUNSELLORS,
    )


def _bundles(sections: Sequence[Section]) -> set[str]:
    return {name for each in sections for figure in each.figures for name in figure.bundles}


def _agreement(sections: Sequence[Section]) -> list[str]:
    """Each sentence once, instead of below every figure that rests on it."""
    analyses = [line for each in sections if each.analysis for line in each.analysis.agreement]
    drawn = [line for each in sections for figure in each.figures for line in figure.agreement]
    return list(dict.fromkeys(line for line in (*analyses, *drawn) if line != NOT_RATED))


def _curves(store: Store, wanted: Wanted) -> list[Section]:
    perceived = [name for name in MEASURES if name in PERCEIVED]
    expressed = [name for name in MEASURES if name not in PERCEIVED]
    found = [
        Section("Week by week", "Means of ended sessions.", _weekly(store, wanted, expressed)),
        Section(
            "Perceived empathy, week by week",
            "Weak predictions of how a listener may perceive the turns; never combined with "
            "expressed empathy.",
            _weekly(store, wanted, perceived),
        ),
    ]
    drawn = [
        curve
        for name in (SESSIONS, *OVER_TIME)
        for curve in shown_curves.cohorts(
            store, name, wanted.since, _after(wanted), team=wanted.team or ALL
        )
    ]
    about = "By the year in which the counsellors joined."
    found.append(Section("Cohorts, month by month", about, _with_values(store, drawn, wanted.days)))
    return found


def _weekly(store: Store, wanted: Wanted, measures: Sequence[str]) -> list[Figure]:
    team = wanted.team or ALL
    drawn = [
        curve
        for name in measures
        for curve in shown_curves.weekly(store, name, team, wanted.since, _after(wanted))
    ]
    return _with_values(store, drawn, wanted.days)


def _with_values(store: Store, drawn: Sequence[Curve], days: Sequence[MarkedDay]) -> list[Figure]:
    """Measures that no session has are left out; hidden ones are not."""
    known = [
        curve
        for curve in drawn
        if curve.measure == SESSIONS or any(point.value is not None for point in curve.points)
    ]
    return list(figures(store, known, days=days))


def _analyses(store: Store, wanted: Wanted) -> list[Section]:
    asked = {over_time.QUESTION: OVER_TIME, service_levels.QUESTION: SERVICE}
    return [_analysis(store, wanted, name, measures) for name, measures in asked.items()]


def _analysis(store: Store, wanted: Wanted, question: str, measures: Sequence[str]) -> Section:
    asked = Asked(
        scope=Scope(team=wanted.team),
        since=datetime.combine(wanted.since, time(), UTC),
        until=datetime.combine(_after(wanted), time(), UTC),
        measures=tuple(measures),
        fewest_days=wanted.fewest_days,
        archive=wanted.archive,
    )
    found = questions.answer(
        store, question, asked, lambda known: agreement_words.sentences(store, known)
    )
    return Section(
        found.title, found.about, list(figures(store, found.curves, days=wanted.days)), found
    )


def _after(wanted: Wanted) -> date:
    return wanted.until + timedelta(days=1)
