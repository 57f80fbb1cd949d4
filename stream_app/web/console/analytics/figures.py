"""A figure: curves, their table, n, models, hidden cells and agreement."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from stream_app.analytics.questions.marked_days import MarkedDay
from stream_app.analytics.questions.result import Curve
from stream_app.analytics.questions.shown_curves import MONTHS, SESSIONS, WEEKS
from stream_app.analytics.views.columns import Kind
from stream_app.contracts.scores import MECHANISMS, TOTAL
from stream_app.core.measures.catalogue import MEASURES
from stream_app.findings import agreement
from stream_app.findings.agreement import Sides
from stream_app.findings.exports.columns import Column, Row
from stream_app.store.stream.repository import Store
from stream_app.web.console.formatting import plain, sentence
from stream_app.web.console.plots import band_chart
from stream_app.web.console.plots.band_chart import Mark

OF_MECHANISMS: Final = frozenset(
    each.short for each in MEASURES if each.of_exchanges or each.mean_of == TOTAL
)
"""Measures computed from the mechanisms: their agreement is that of the mechanisms."""
HIDDEN: Final = "hidden"
WHY: Final = {HIDDEN: "too few people"}
"""Why a point has no value, where the word that stands for it does not say so."""
PERIODS: Final = {WEEKS: "week", MONTHS: "month", "months since joining": "month"}
OF_ALERTS: Final = ("acknowledge_minutes", "acknowledged", "precision")
PREDICTED: Final = "predicted"
"""Axis of reliability curves, whose points count ratings."""
NOT_RATED: Final = "People do not rate this measure."
COLUMNS: Final = [
    Column("measure", Kind.TEXT, "As in the reporting views"),
    Column("axis", Kind.TEXT, "What `period` is"),
    Column("period", Kind.TEXT, "First day of the week or month, or months since joining"),
    Column("group", Kind.TEXT, "Team, joining year, or all"),
    Column("bundle", Kind.TEXT, "The model that scored; compare within one"),
    Column("unit", Kind.TEXT, "Of the mean and the interval"),
    Column("mean", Kind.NUMBER, "Mean over sessions; empty: hidden"),
    Column("low", Kind.NUMBER, "Lower end of the 95 % interval"),
    Column("high", Kind.NUMBER, "Upper end of the 95 % interval"),
    Column("n", Kind.INTEGER, "Sessions; empty: hidden"),
    Column("hidden", Kind.BOOLEAN, "Whether too few people are behind it"),
]


@dataclass(frozen=True, slots=True)
class Figure:
    """``agreement``: sentences about how well people and the models agree on the measure.

    ``missing``: what stands for a point without a value.
    """

    title: str
    curves: list[Curve]
    agreement: list[str]
    missing: str
    days: Sequence[MarkedDay] = ()

    @property
    def unit(self) -> str:
        """The unit of the vertical axis."""
        return self.curves[0].unit

    @property
    def axis(self) -> str:
        """What the horizontal axis is."""
        return self.curves[0].axis

    @property
    def groups(self) -> list[str]:
        """Names of the lines, in the order of their styles."""
        return band_chart.groups(self.curves)

    @property
    def bundles(self) -> list[str]:
        """The models, by when they began to score."""
        return [bundle for _, bundle in band_chart.models(self.curves)]

    @property
    def n(self) -> int:
        """Sessions, alerts or ratings behind all shown points."""
        points = [point for curve in self.curves for point in curve.points]
        return sum(point.n or 0 for point in points if point.value is not None)

    @property
    def counted(self) -> str:
        """``n`` with what it counts."""
        named = "session"
        if self.axis == PREDICTED:
            named = "rating"
        elif self.curves[0].measure in OF_ALERTS:
            named = "alert"
        return f"{self.n:,} {named}{'' if self.n == 1 else 's'}"

    @property
    def gaps(self) -> str:
        """How many periods have no value, and why; empty if all have one.

        A week in which two models scored is one week, shown if either has a value.
        """
        known: dict[tuple[str, float], bool] = {}
        for curve in self.curves:
            for point in curve.points:
                place = curve.group, point.x
                known[place] = known.get(place, False) or point.value is not None
        without = sum(not value for value in known.values())
        if not without:
            return ""
        period = PERIODS.get(self.axis, "point") if len(self.groups) == 1 else "point"
        named = f"{period}{'' if len(known) == 1 else 's'}"
        are = "is" if without == 1 else "are"
        why = WHY.get(self.missing, self.missing)
        return f"{without} of {len(known)} {named} {are} not shown: {why}"

    @property
    def marks(self) -> list[Mark]:
        """Changes of the model and other events, with their letters."""
        return band_chart.marks(self.curves, self.days)

    @property
    def drawn(self) -> Markup:
        """Draw as SVG; empty if nothing is shown."""
        return band_chart.chart(self.curves, self.marks)

    @property
    def rows(self) -> list[Row]:
        """Rows of a table, in the order of time."""
        rows = [
            {
                "measure": curve.measure,
                "axis": curve.axis,
                "period": point.label,
                "group": curve.group,
                "bundle": curve.bundle,
                "unit": curve.unit,
                "mean": point.value,
                "low": point.low,
                "high": point.high,
                "n": point.n,
                "hidden": point.value is None,
                "x": point.x,
            }
            for curve in self.curves
            for point in curve.points
        ]
        return sorted(rows, key=lambda row: (row["x"], row["group"], row["bundle"]))


def figures(
    store: Store,
    curves: Sequence[Curve],
    missing: str = HIDDEN,
    days: Sequence[MarkedDay] = (),
) -> Iterator[Figure]:
    """One figure for each title and measure, in the order of the curves."""
    by: dict[tuple[str, str], list[Curve]] = {}
    for curve in curves:
        by.setdefault((curve.title, curve.measure), []).append(curve)
    for (title, measure), some in by.items():
        name = plain(measure) if title == measure else title
        known = [bundle for _, bundle in band_chart.models(some)]
        yield Figure(sentence(name), some, agreement_on(store, measure, known), missing, days)


def agreement_on(store: Store, measure: str, bundles: Sequence[str]) -> list[str]:
    """The latest agreement of people and these models on what a measure is made of."""
    heads = MECHANISMS if measure in OF_MECHANISMS else (measure,) if measure in MECHANISMS else ()
    if not heads:
        return [] if measure == SESSIONS else [NOT_RATED]
    return [
        f"{bundle}, {plain(each.head).lower()}: {each.kappa.words}"
        for bundle in bundles
        for each in agreement.of_bundle(store, bundle, heads)
        if each.sides is Sides.PEOPLE_MODEL
    ]
