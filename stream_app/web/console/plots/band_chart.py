"""Curves with bands as SVG, drawn on the server: no script, and the same on screen and paper.

As in ``charts``, x positions are percentages and y positions pixels, so that a chart fills
the available width while text and marks keep their size. A line ends where the model changes,
where a cell is hidden, and where a period has no sessions. Groups differ in colour and in dashes.
Changes of the model and other events are lines with a letter; a list below the chart explains them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from string import ascii_uppercase
from typing import Final

from markupsafe import Markup

from stream_app.analytics.questions.marked_days import MarkedDay
from stream_app.analytics.questions.result import ALL, Curve, Point
from stream_app.analytics.questions.shown_curves import EPOCH, MONTHS, WEEKS
from stream_app.web.console.plots import axis_ticks

HEIGHT: Final = 190
TOP: Final = 24
PLOT: Final = 140
LEFT: Final = 12.0
RIGHT: Final = 98.0
STYLES: Final = 6
"""Number of different line styles in the style sheet."""
GAP: Final = 1.6
"""Periods further apart than so many steps are not joined: months differ in length."""
CLOSE: Final = 5.0
"""Letters of marks nearer than so many per cent of the width share one place."""
MIDDLE: Final = (35.0, 65.0)
"""Where a third date has room between the first and the last, in per cent of the width."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line with a letter; ``when`` and ``words`` explain it below the chart."""

    x: float
    when: str
    words: str
    letter: str = ""


def marks(curves: Sequence[Curve], days: Sequence[MarkedDay] = ()) -> list[Mark]:
    """Changes of the model, and the marked days that the axis has, in their order."""
    places = [point.x for curve in curves for point in curve.points]
    labels = {point.x: point.label for curve in curves for point in curve.points}
    by_date = bool(curves) and curves[0].axis in (WEEKS, MONTHS)
    said = "model {} begins to score" if by_date else "first sessions scored by model {}"
    found = [
        Mark(place, labels[place], said.format(bundle)) for place, bundle in models(curves)[1:]
    ]
    if by_date and places:
        last = max(places) + (7 if curves[0].axis == WEEKS else 28)
        for each in days:
            x = float((each.day - EPOCH).days)
            if min(places) <= x < last:
                found.append(Mark(min(x, max(places)), each.day.isoformat(), each.words))
    in_order = sorted(found, key=lambda mark: (mark.x, mark.words))
    return [
        Mark(mark.x, mark.when, mark.words, letter)
        for mark, letter in zip(in_order, _letters(len(in_order)), strict=True)
    ]


def _letters(count: int) -> list[str]:
    """A to Z, then A2, B2 and so on."""
    rounds = (place // len(ascii_uppercase) for place in range(count))
    return [
        ascii_uppercase[place % len(ascii_uppercase)] + (str(turn + 1) if turn else "")
        for place, turn in enumerate(rounds)
    ]


def chart(curves: Sequence[Curve], marked: Sequence[Mark] | None = None) -> Markup:
    """Draw all curves of a figure; they have the same axis and unit."""
    shown = [p for curve in curves for p in curve.points if p.value is not None]
    places = sorted({point.x for curve in curves for point in curve.points})
    if not shown:
        return Markup("")
    ends = [end for p in shown for end in (p.value, p.low, p.high) if end is not None]
    if all(point.low is None for point in shown):
        ends.append(0.0)  # counts
    ticks = axis_ticks.ticks(min(ends), max(ends), scale=axis_ticks.scale_of(curves[0].unit))
    plot = _Plot(places[0], places[-1], ticks[0], ticks[-1])
    step = min((b - a for a, b in pairwise(places)), default=1.0)
    lines_at = marks(curves) if marked is None else marked
    parts = [_grid(plot, ticks), _dates(plot, curves, places), _marks(plot, lines_at)]
    styles = {name: i % STYLES for i, name in enumerate(groups(curves))}
    lines = [(styles[c.group], run) for c in curves for run in runs(c.points, step * GAP)]
    stretched = Markup("").join(_line(plot, style, run) for style, run in lines)
    parts.append(
        Markup(
            '<svg y="{top}" width="100%" height="{plot}" viewBox="0 0 100 {plot}" '
            'preserveAspectRatio="none" aria-hidden="true" overflow="visible">{lines}</svg>'
        ).format(top=TOP, plot=PLOT, lines=stretched)
    )
    parts += [
        _point(plot, styles[c.group], c, point, alone=len(run) == 1)
        for c in curves
        for run in runs(c.points, step * GAP)
        for point in run
    ]
    return Markup(
        '<svg class="bands" role="img" aria-label="{said}" width="100%" height="{height}"'
        "{days}>{parts}</svg>"
    ).format(
        said=in_words(curves),
        height=HEIGHT,
        days=_days(curves[0].axis, places),
        parts=Markup("").join(parts),
    )


def _days(axis: str, places: Sequence[float]) -> Markup:
    """What the script that zooms by dragging needs: the dates at both ends of the plot."""
    if axis not in (WEEKS, MONTHS):
        return Markup("")
    first, last = (EPOCH + timedelta(days=places[place]) for place in (0, -1))
    return Markup(' data-first="{}" data-last="{}" data-left="{}" data-right="{}"').format(
        first, last, LEFT, RIGHT
    )


def groups(curves: Sequence[Curve]) -> list[str]:
    """The groups in order of their first curve."""
    return list(dict.fromkeys(curve.group for curve in curves))


def models(curves: Sequence[Curve]) -> list[tuple[float, str]]:
    """The bundles by their first place on the axis."""
    first: dict[str, float] = {}
    for curve in curves:
        if curve.points:
            place = min(point.x for point in curve.points)
            first[curve.bundle] = min(place, first.get(curve.bundle, place))
    return sorted((place, bundle) for bundle, place in first.items())


def runs(points: Sequence[Point], gap: float) -> Iterator[list[Point]]:
    """Points that a line joins: neighbouring periods that are not hidden."""
    run: list[Point] = []
    for point in points:
        if run and (point.value is None or point.x - run[-1].x > gap):
            yield run
            run = []
        if point.value is not None:
            run.append(point)
    if run:
        yield run


def in_words(curves: Sequence[Curve]) -> str:
    """A text alternative; the table below a chart has the numbers."""
    said = []
    for curve in curves:
        shown = [point for point in curve.points if point.value is not None]
        if shown:
            group = "" if curve.group == ALL else f"{curve.group}, "
            first, last = shown[0], shown[-1]
            said.append(
                f"{group}model {curve.bundle}: {first.value:.2f} ({first.label}) to "
                f"{last.value:.2f} ({last.label}), {len(shown)} points"
            )
    return f"{curves[0].unit} by {curves[0].axis}; " + "; ".join(said)


class _Plot:
    """Maps values to positions."""

    def __init__(self, first: float, last: float, low: float, high: float) -> None:
        self._first, self._last, self._low, self._high = first, last, low, high

    def x(self, value: float) -> float:
        """Position in per cent of the width."""
        width = self._last - self._first
        share = (value - self._first) / width if width else 0.5
        return LEFT + (RIGHT - LEFT) * share

    def y(self, value: float) -> float:
        """Pixels below the upper edge of the plot; what lies past the scale is drawn at its end."""
        inside = min(max(value, self._low), self._high)
        return PLOT * (1 - (inside - self._low) / (self._high - self._low))


def _grid(plot: _Plot, ticks: Sequence[float]) -> Markup:
    return Markup("").join(
        Markup(
            '<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
            '<text x="0" y="{text:.1f}" aria-hidden="true">{label}</text>'
        ).format(y=TOP + plot.y(tick), text=TOP + plot.y(tick) - 3, label=axis_ticks.shown(tick))
        for tick in ticks
    )


def _dates(plot: _Plot, curves: Sequence[Curve], places: Sequence[float]) -> Markup:
    labels = {point.x: point.label for curve in curves for point in curve.points}
    chosen = {places[0]: "start", places[-1]: "end"}
    middle = min(places, key=lambda place: abs(plot.x(place) - sum(MIDDLE) / 2))
    if MIDDLE[0] <= plot.x(middle) <= MIDDLE[1]:
        chosen.setdefault(middle, "middle")
    return Markup("").join(
        Markup(
            '<text x="{x:.2f}%" y="{y}" text-anchor="{anchor}" aria-hidden="true">{label}</text>'
        ).format(x=plot.x(place), y=HEIGHT - 6, anchor=anchor, label=labels[place])
        for place, anchor in chosen.items()
    )


def _marks(plot: _Plot, marked: Sequence[Mark]) -> Markup:
    """Lines from top to bottom; letters that would touch stand side by side at one place."""
    lines = [
        Markup('<line x1="{x:.2f}%" x2="{x:.2f}%" y1="14" y2="{bottom}"/>').format(
            x=plot.x(mark.x), bottom=TOP + PLOT
        )
        for mark in marked
    ]
    places: list[tuple[float, list[str]]] = []
    for mark in marked:
        x = plot.x(mark.x)
        if places and x - places[-1][0] < CLOSE * max(1, len(places[-1][1])):
            places[-1][1].append(mark.letter)
        else:
            places.append((x, [mark.letter]))
    letters = [
        Markup(
            '<text x="{x:.2f}%" y="10" text-anchor="{anchor}" aria-hidden="true">{letters}</text>'
        ).format(x=x, anchor="end" if x > 100 - 2 * CLOSE else "start", letters=" ".join(together))
        for x, together in places
    ]
    return Markup('<g class="mark">{}</g>').format(Markup("").join([*lines, *letters]))


def _line(plot: _Plot, style: int, run: Sequence[Point]) -> Markup:
    """A band and its line, in a space of 100 × ``PLOT`` that is stretched to the width."""
    if len(run) == 1:
        return Markup("")
    bands = [p for p in run if p.low is not None and p.high is not None]
    upper = [f"{plot.x(p.x):.3f},{plot.y(p.high):.1f}" for p in bands if p.high is not None]
    lower = [f"{plot.x(p.x):.3f},{plot.y(p.low):.1f}" for p in bands if p.low is not None]
    middle = [f"{plot.x(p.x):.3f},{plot.y(p.value):.1f}" for p in run if p.value is not None]
    band = (
        Markup('<polygon points="{}"/>').format(" ".join([*upper, *reversed(lower)]))
        if len(bands) > 1
        else Markup("")
    )
    return Markup(
        '<g class="series style-{style}">{band}'
        '<polyline points="{line}" vector-effect="non-scaling-stroke"/></g>'
    ).format(style=style, band=band, line=" ".join(middle))


def _point(plot: _Plot, style: int, curve: Curve, point: Point, *, alone: bool) -> Markup:
    value = point.value or 0.0
    known = point.low is not None and point.high is not None
    interval = f" [{point.low:.3g}, {point.high:.3g}]" if known else ""
    bar = (
        Markup('<line x1="{x:.2f}%" x2="{x:.2f}%" y1="{low:.1f}" y2="{high:.1f}"/>').format(
            x=plot.x(point.x),
            low=TOP + plot.y(point.low or 0.0),
            high=TOP + plot.y(point.high or 0.0),
        )
        if alone and known
        else Markup("")
    )
    return Markup(
        '<g class="point style-{style}"><title>{title}</title>{bar}'
        '<circle cx="{x:.2f}%" cy="{y:.1f}" r="3"/></g>'
    ).format(
        style=style,
        title=f"{point.label}: {value:.3g}{interval}, n {point.n}, {curve.bundle}",
        bar=bar,
        x=plot.x(point.x),
        y=TOP + plot.y(value),
    )
