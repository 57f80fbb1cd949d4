"""A report of two pages: what changed, how sure that is, by which model, and what to look at.

Its figures are those of the analyses and of the console's curves; nothing is computed for it alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Final

from stream_app import __version__
from stream_app.analytics.questions import drift, fairness, over_time, service_levels, shown_curves
from stream_app.analytics.questions.marked_days import TRAINING, MarkedDay, trained_team
from stream_app.analytics.questions.questions import Asked
from stream_app.analytics.questions.result import ALL, Analysis, Curve, Estimate
from stream_app.analytics.questions.shown_curves import SESSIONS
from stream_app.analytics.questions.suppression import MIN_CLIENTS, MIN_COUNSELLORS
from stream_app.core.measures.catalogue import Use, short_names
from stream_app.store.sessions import bundle_info
from stream_app.store.sessions.scope import Scope
from stream_app.store.stream.repository import Store
from stream_app.web.console.analytics import answers
from stream_app.web.console.analytics.asked_questions import ASKED
from stream_app.web.console.analytics.figures import Figure, figures
from stream_app.web.console.formatting import plain, sentence
from stream_app.web.console.plots import band_chart
from stream_app.web.console.rendering import STATIC, templates

Answer = Callable[[str, Asked], Analysis]
"""How a question is answered: from the database, or by what was kept."""
STYLES: Final = ("figures.css", "report.css", "summary.css")
OVER_TIME: Final = short_names(Use.SUMMARY)
SERVICE: Final = ("empathy_index", "first_answer", "looked_at", "acknowledge_minutes")
DRAWN: Final = (SESSIONS, *OVER_TIME)
TOLD: Final = "empathy_index"
"""The measure of the sentences; the table has all."""
ROWS: Final = (over_time.WITHIN, service_levels.JUMP)
"""The figures of the table: changes over time, and at a date."""
MOST_LINES: Final = 8
"""Most lines of what to look at, so that the report stays at two pages."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the report is about.

    Attributes:
        team: None for all.
        since: the first day.
        until: the last day.
        at: a date at which something may have changed; None: the last training of ``days``.
        days: marked days of the platform.
        fewest_days: minimum stay of counsellors; None: that of the analysis.
        attributes: self-declared, by pseudonym.
        archive: the folder of archived months.
    """

    team: str | None
    since: date
    until: date
    at: date | None = None
    days: Sequence[MarkedDay] = ()
    fewest_days: int | None = None
    attributes: Mapping[str, str] | None = None
    archive: Path | None = None

    @property
    def changed_at(self) -> date | None:
        """The chosen date, or that of the last training within the time."""
        known = [each.day for each in self.days if each.kind == TRAINING]
        past = [day for day in known if self.since < day <= self.until]
        return self.at or (past[-1] if past else None)

    @property
    def trained(self) -> str:
        """The team that the training concerned, to be compared with the others; empty for all."""
        return "" if self.team else trained_team(self.days, self.changed_at)

    @property
    def what(self) -> str:
        """What happened then, if it is a marked day; without the team that is compared."""
        known = [each for each in self.days if each.day == self.changed_at]
        own = [replace(each, team="") if each.team == self.trained else each for each in known]
        return own[0].words if own else ""


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of the report's table; ``problem`` stands for what has no value."""

    measure: str
    what: str
    value: str
    interval: str
    chance: str
    unit: str
    n: int | None
    problem: str


@dataclass(frozen=True, slots=True)
class Model:
    """A bundle, where its curve begins, and how far people agree with it."""

    bundle: str
    since: str
    agreement: list[str]


@dataclass(frozen=True, slots=True)
class Summary:
    """``said``: headings and answers; ``look``: what deserves attention."""

    wanted: Wanted
    said: list[tuple[str, str]]
    rows: list[Row]
    models: list[Model]
    look: list[str]
    figures: list[Figure]
    sessions: int | None
    counsellors: int | None


def summarise(store: Store, wanted: Wanted, answer: Answer) -> Summary:
    """Ask four of the questions and take their answers together."""
    asked = Asked(
        scope=Scope(team=wanted.team),
        since=_midnight(wanted.since),
        until=_midnight(_after(wanted)),
        attributes=wanted.attributes,
        archive=wanted.archive,
    )
    stay = asked.fewest_days if wanted.fewest_days is None else wanted.fewest_days
    choices = {
        service_levels.QUESTION: replace(
            asked,
            measures=SERVICE,
            at=_midnight(wanted.changed_at),
            trained=wanted.trained or None,
        ),
        over_time.QUESTION: replace(asked, measures=OVER_TIME, fewest_days=stay),
        drift.QUESTION: asked,
        fairness.QUESTION: asked,
    }
    found = [answer(question, choice) for question, choice in choices.items()]
    drawn = _drawn(store, wanted)
    shown = list(figures(store, drawn, days=wanted.days))
    return Summary(
        wanted=wanted,
        said=[(ASKED[each.question].link, _said(each, wanted)) for each in found],
        rows=[
            _row(each)
            for analysis in found
            for each in analysis.estimates
            if each.name in ROWS and each.group == ALL
        ],
        models=_models(drawn, found[0]),
        look=_look(found, shown),
        figures=shown,
        sessions=found[0].sessions,
        counsellors=found[0].counsellors,
    )


def _midnight(day: date | None) -> datetime | None:
    return None if day is None else datetime.combine(day, time(), UTC)


def _after(wanted: Wanted) -> date:
    return min(wanted.until, date.max - timedelta(days=1)) + timedelta(days=1)


def _said(analysis: Analysis, wanted: Wanted) -> str:
    """The answer about one measure where there are several, as on the question's page."""
    some = analysis.estimates
    if analysis.question in (service_levels.QUESTION, over_time.QUESTION):
        some = [each for each in some if each.measure == TOLD]
    return answers.sentence(
        analysis, some, at=wanted.changed_at, what=wanted.what, trained=wanted.trained
    )


def _row(each: Estimate) -> Row:
    return Row(
        measure=sentence(plain(each.measure)),
        what=sentence(each.name),
        value="" if each.value is None else answers.number(each.value),
        interval=answers.interval(each),
        chance=answers.chance(each),
        unit=each.unit,
        n=each.n,
        problem=each.problem or "–",
    )


def _drawn(store: Store, wanted: Wanted) -> list[Curve]:
    team = wanted.team or ALL
    return [
        curve
        for name in DRAWN
        for curve in shown_curves.weekly(store, name, team, wanted.since, _after(wanted))
    ]


def _models(drawn: Sequence[Curve], analysis: Analysis) -> list[Model]:
    """Models of the analysis, in the order of their curves where there are any."""
    labels = {point.x: point.label for curve in drawn for point in curve.points}
    begins = {bundle: labels[place] for place, bundle in band_chart.models(drawn)}
    return [
        Model(
            bundle,
            begins.get(bundle, ""),
            [
                line.removeprefix(f"{bundle}, ")
                for line in analysis.agreement
                if line.startswith(f"{bundle}, ")
            ],
        )
        for bundle in sorted(analysis.bundles, key=lambda name: begins.get(name, ""))
    ]


def _look(found: Sequence[Analysis], shown: Sequence[Figure]) -> list[str]:
    """Warnings, changes of the model, groups that differ, and what is not known."""
    warnings = [line.replace("_", " ") for analysis in found for line in analysis.warnings]
    marks = [mark for figure in shown[:1] for mark in figure.marks]
    changes = [
        f"{mark.when}: {mark.words}. Compare figures within one model."
        for mark in marks
        if mark.words.startswith("model ")
    ]
    gaps = [f"{figure.gaps} ({figure.title.lower()})." for figure in shown[:1] if figure.gaps]
    lines = [*warnings, *changes, *_unequal(found), *_unrated(found), *gaps]
    return [sentence(line) for line in dict.fromkeys(lines)][:MOST_LINES]


def _unequal(found: Sequence[Analysis]) -> Iterator[str]:
    for analysis in found:
        for each in analysis.estimates if analysis.question == fairness.QUESTION else ():
            if answers.is_beyond_chance(each) and not fairness.is_small(each):
                yield f"{plain(each.measure)} differ between {each.group} and all others."


def _unrated(found: Sequence[Analysis]) -> Iterator[str]:
    lines = sorted({line for each in found for line in each.agreement if "not enough" in line})
    if lines:
        named = [line.partition(":")[0] for line in lines]
        yield f"People have rated too few turns to say how far they agree on {'; '.join(named)}."


def html(store: Store, summary: Summary) -> str:
    """The report as one HTML document with its styles."""
    return templates.env.get_template("summary_file.html").render(
        summary=summary,
        styles="\n".join((STATIC / name).read_text("utf-8") for name in STYLES),
        made_at=datetime.now(UTC),
        version=__version__,
        synthetic=bundle_info.synthetic(store),
        fewest_clients=MIN_CLIENTS,
        fewest_counsellors=MIN_COUNSELLORS,
    )
