"""Curves with bands as SVG, drawn on the server: no script, and the same on screen and paper.

As in ``charts``, x positions are percentages and y positions pixels, so that a chart fills
the available width while text and marks keep their size. A line ends where the model changes,
where a cell is hidden, and where a period has no sessions. Groups differ in colour and in dashes.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from stream_app.analytics.result import ALL, Curve, Point
from stream_app.web.console import axis_ticks

HEIGHT: Final = 190
TOP: Final = 24
PLOT: Final = 140
LEFT: Final = 8.0
RIGHT: Final = 98.0
STYLES: Final = 6
"""Number of different line styles in the style sheet."""
GAP: Final = 1.6
"""Periods further apart than so many steps are not joined: months differ in length."""


def chart(curves: Sequence[Curve]) -> Markup:
    """Draw all curves of a figure; they have the same axis and unit."""
    shown = [p for curve in curves for p in curve.points if p.value is not None]
    places = sorted({point.x for curve in curves for point in curve.points})
    if not shown:
        return Markup("")
    ends = [end for p in shown for end in (p.value, p.low, p.high) if end is not None]
    if all(point.low is None for point in shown):
        ends.append(0.0)  # counts
    ticks = axis_ticks.ticks(min(ends), max(ends))
    plot = _Plot(places[0], places[-1], ticks[0], ticks[-1])
    step = min((b - a for a, b in pairwise(places)), default=1.0)
    parts = [_grid(plot, ticks), _dates(plot, curves, places), _models(plot, curves)]
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
        '<svg class="bands" role="img" aria-label="{said}" width="100%" height="{height}">'
        "{parts}</svg>"
    ).format(said=in_words(curves), height=HEIGHT, parts=Markup("").join(parts))


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
    """From values to positions."""

    def __init__(self, first: float, last: float, low: float, high: float) -> None:
        self._first, self._last, self._low, self._high = first, last, low, high

    def x(self, value: float) -> float:
        """Per cent of the width."""
        width = self._last - self._first
        share = (value - self._first) / width if width else 0.5
        return LEFT + (RIGHT - LEFT) * share

    def y(self, value: float) -> float:
        """Pixels below the upper edge of the plot."""
        return PLOT * (1 - (value - self._low) / (self._high - self._low))


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
    if len(places) > 4:
        chosen[places[len(places) // 2]] = "middle"
    return Markup("").join(
        Markup(
            '<text x="{x:.2f}%" y="{y}" text-anchor="{anchor}" aria-hidden="true">{label}</text>'
        ).format(x=plot.x(place), y=HEIGHT - 6, anchor=anchor, label=labels[place])
        for place, anchor in chosen.items()
    )


def _models(plot: _Plot, curves: Sequence[Curve]) -> Markup:
    """A mark where another model begins to score."""
    return Markup("").join(
        Markup(
            '<g class="model"><line x1="{x:.2f}%" x2="{x:.2f}%" y1="14" y2="{bottom}"/>'
            '<text x="{x:.2f}%" y="10" text-anchor="{anchor}" aria-hidden="true">{bundle}</text>'
            "</g>"
        ).format(
            x=plot.x(place),
            bottom=TOP + PLOT,
            anchor="end" if plot.x(place) > 55 else "start",
            bundle=bundle,
        )
        for place, bundle in models(curves)[1:]
    )


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
