"""Risk charts as SVG: the sparkline on a card and the curve above a transcript.

Positions are percentages, so that a chart fills the available width while text and marks keep
their size. No information depends on colour alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

from stream_app.web.console.formatting import number

Points = Sequence[tuple[int, float]]
MIN_TURNS: Final = 8
"""Minimum length of the axis, so that the first turns do not fill the whole width."""
LANE: Final = 20
PLOT: Final = 150
"""Heights in pixels of an alert's lane and of the curve."""


@dataclass(frozen=True, slots=True)
class AlertLane:
    """An alert on the axis of turns; ``last`` is None while it is open."""

    label: str
    state: str
    first: int
    last: int | None


def sparkline(points: Points, enter: float | None) -> Markup:
    """Draw the risk since the start; a dashed line marks the threshold ``enter``."""
    last = max([MIN_TURNS, *(seq for seq, _ in points)])
    line = " ".join(f"{100 * seq / last:.1f},{100 - 100 * risk:.1f}" for seq, risk in points)
    end = points[-1] if points else None
    dot = '<circle r="0"/>'
    if end:
        dot = f'<circle cx="{100 * end[0] / last:.1f}%" cy="{100 - 100 * end[1]:.1f}%" r="3"/>'
    return Markup(  # noqa: S704  # only numbers; a wall has 500 of these, and `%` takes longer
        f'<svg class="sparkline" role="img" aria-label="{in_words(points)}" data-last="{last:d}">'
        f'{_across(enter)}<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%"'
        f' height="100%"><polyline points="{line}" vector-effect="non-scaling-stroke"/></svg>'
        f"{dot}</svg>"
    )


def in_words(points: Points, closing: float | None = None) -> str:
    """A text alternative to a risk line.

    >>> in_words([(1, 0.2), (3, 0.5), (5, 0.4)])
    'Risk after 3 counsellor turns: began at 0.20, highest 0.50, now 0.40'
    >>> in_words([(1, 0.2), (3, 0.5)], closing=0.44)
    'Risk after 2 counsellor turns: began at 0.20, highest 0.50, last 0.50, closed at 0.44'
    """
    if not points:
        return "No risk yet"
    risks = [risk for _, risk in points]
    turns = "1 counsellor turn" if len(points) == 1 else f"{len(points)} counsellor turns"
    end = f"now {number(risks[-1])}"
    if closing is not None:
        end = f"last {number(risks[-1])}, closed at {number(closing)}"
    return f"Risk after {turns}: began at {number(risks[0])}, highest {number(max(risks))}, {end}"


def risk_curve(
    points: Points,
    enter: float | None,
    alerts: Sequence[AlertLane],
    last_seq: int,
    link: Callable[[int], str],
    closing: float | None = None,
) -> Markup:
    """Draw the risk after each counsellor turn, with alerts below it on the same axis.

    Args:
        points: (seq, risk in [0, 1]).
        enter: the bundle's threshold, drawn as a dashed line.
        alerts: one lane each.
        last_seq: end of the axis.
        link: returns the address of a turn.
        closing: the risk at the session's end, drawn as a diamond after the last point.
    """
    last = max(MIN_TURNS, last_seq)

    def across(seq: float) -> str:
        return f"{2 + 96 * min(seq, last) / last:.2f}"

    def down(risk: float) -> float:
        return 6 + (PLOT - 12) * (1 - risk)

    line = " ".join(f"{across(seq)},{down(risk):.1f}" for seq, risk in points)

    def dot(seq: int, risk: float) -> str:
        x, shown, above = across(seq), number(risk), enter is not None and risk >= enter
        return (  # numbers, which need no escaping; `Markup.format` takes ten times as long
            f'<a href="{escape(link(seq))}" data-seq="{seq}" aria-label="Turn {seq}: risk {shown}">'
            f'<rect class="reach" x="{float(x) - 48 / last:.2f}%" y="0" width="{96 / last:.2f}%"'
            f' height="{PLOT}"/><circle cx="{x}%" cy="{down(risk):.1f}" r="{4.5 if above else 3.5}"'
            f' class="{"above" if above else "below"}"/><title>Turn {seq}: risk {shown}</title></a>'
        )

    grid = Markup("").join(
        Markup('<line class="grid" x1="2%" x2="98%" y1="{y}" y2="{y}"/>').format(y=down(value))
        for value in (0.0, 0.5, 1.0)
    )
    threshold = (
        Markup('<line class="threshold" x1="2%" x2="98%" y1="{y:.1f}" y2="{y:.1f}"/>').format(
            y=down(enter)
        )
        if enter is not None
        else Markup("")
    )
    lanes = Markup("").join(
        _lane(place, alert, across, last, link) for place, alert in enumerate(alerts)
    )
    return Markup(
        '<svg class="curve" role="group" aria-label="{said}" height="{height}" width="100%">'
        '{grid}{threshold}<svg class="line" viewBox="0 0 100 {plot}" preserveAspectRatio="none"'
        ' width="100%" height="{plot}" aria-hidden="true">'
        '<polyline points="{line}" vector-effect="non-scaling-stroke"/></svg>'
        "{dots}{closing}{lanes}</svg>"
    ).format(
        said=in_words(points, closing),
        closing=_closing(closing, points, across, down, enter),
        height=PLOT + LANE * len(alerts),
        plot=PLOT,
        grid=grid,
        threshold=threshold,
        line=line,
        dots=Markup("".join(dot(seq, risk) for seq, risk in points)),  # noqa: S704  # escaped
        lanes=lanes,
    )


def _lane(
    place: int,
    alert: AlertLane,
    across: Callable[[float], str],
    last: int,
    link: Callable[[int], str],
) -> Markup:
    begin = float(across(alert.first))
    end = float(across(alert.last if alert.last is not None else last))
    top = PLOT + LANE * place
    late = begin > 55
    until = "still open" if alert.last is None else f"until turn {alert.last}"
    return Markup(
        '<a href="{href}" class="alert-span {state}" aria-label="{label}, {state}: from turn '
        '{first}, {until}"><line x1="{begin}%" x2="{begin}%" y1="4" y2="{base}"/>'
        '<rect x="{begin}%" y="{y}" width="{width}%" height="5" rx="2"/>'
        '<text x="{begin}%" y="{text}" dx="{dx}" text-anchor="{anchor}">{label} · {state}</text>'
        "</a>"
    ).format(
        href=link(alert.first),
        state=alert.state,
        label=alert.label,
        first=alert.first,
        until=until,
        begin=f"{begin:.2f}",
        base=top + 4,
        y=top + 2,
        width=f"{max(0.8, end - begin):.2f}",
        text=top + LANE - 2,
        dx=-2 if late else 2,
        anchor="end" if late else "start",
    )


def _closing(
    closing: float | None,
    points: Points,
    across: Callable[[float], str],
    down: Callable[[float], float],
    enter: float | None,
) -> Markup:
    """The closing value, joined to the last point by a dashed line."""
    if closing is None or not points:
        return Markup("")
    seq, risk = points[-1]
    return Markup(
        '<line class="to-closing" x1="{x}%" y1="{from_y:.1f}" x2="99.2%" y2="{y:.1f}"/>'
        '<svg class="closing {kind}" x="99.2%" y="{y:.1f}" overflow="visible">'
        '<path d="M0-6 6 0 0 6-6 0z"/><title>Closing value: risk {risk}</title></svg>'
    ).format(
        kind="above" if enter is not None and closing >= enter else "below",
        x=across(seq),
        from_y=down(risk),
        y=down(closing),
        risk=number(closing),
    )


def _across(enter: float | None) -> str:
    if enter is None:
        return ""
    y = f"{100 - 100 * enter:.1f}%"
    return f'<line class="threshold" x1="0" x2="100%" y1="{y}" y2="{y}"/>'
