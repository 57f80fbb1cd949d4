"""Figures with their intervals as one line each below a common axis, drawn on the server.

Labels are text beside the drawing, so that long ones wrap and none is printed over another.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from stream_app.analytics.questions.result import Estimate
from stream_app.web.console.plots import axis_ticks
from stream_app.web.console.plots.axis_ticks import Scale

HEIGHT: Final = 24
LEFT: Final = 2.0
RIGHT: Final = 98.0
MOST: Final = 40
"""Lines of a plot; the table has all."""


@dataclass(frozen=True, slots=True)
class Line:
    """``drawn``: the interval as SVG; empty where there is no value."""

    estimate: Estimate
    label: str
    drawn: Markup


@dataclass(frozen=True, slots=True)
class IntervalChart:
    """Lines under one unit; ``left_out``: further figures that only the table has."""

    unit: str
    lines: list[Line]
    axis: Markup
    null: float | None
    left_out: int = 0


def chart(
    estimates: Sequence[tuple[str, Estimate]], null: float | None, scale: Scale = (None, None)
) -> IntervalChart | None:
    """Draw labelled figures that have a value; None if none has.

    ``null``: where a line stands for no difference; None: nowhere. With a ``null`` of 1, of ratios,
    the axis is logarithmic: twice is as far as half.
    """
    shown = [(label, each) for label, each in estimates if each.value is not None]
    if not shown:
        return None
    drawn = [each for _, each in shown[:MOST]]
    by_log = null == 1.0 and all(
        end > 0 for each in drawn for end in (each.value, each.low, each.high) if end is not None
    )
    ends = [end for each in drawn for end in (each.value, each.low, each.high) if end is not None]
    if null is not None:
        ends.append(null)
    ticks = _log_ticks(ends) if by_log else axis_ticks.ticks(min(ends), max(ends), scale=scale)
    places = _Places(ticks[0], ticks[-1], by_log=by_log)
    return IntervalChart(
        drawn[0].unit,
        [Line(each, label, _line(each, places, null)) for label, each in shown[:MOST]],
        _axis(ticks, places),
        null,
        len(shown) - len(drawn),
    )


def _log_ticks(ends: Sequence[float]) -> list[float]:
    """Halves and doubles that enclose the range."""
    first, last = math.floor(math.log2(min(ends))), math.ceil(math.log2(max(ends)))
    step = max(1, math.ceil((last - first) / 4))
    return [2.0**place for place in range(first, max(last, first + 1) + step, step)]


class _Places:
    """Maps values to per cent of the width; values past the axis are at its end."""

    def __init__(self, first: float, last: float, *, by_log: bool) -> None:
        self._scaled = math.log2 if by_log else float
        self._first, self._last = self._scaled(first), self._scaled(last)
        self._lowest, self._highest = first, last

    def x(self, value: float) -> float:
        inside = self._scaled(min(max(value, self._lowest), self._highest))
        return LEFT + (RIGHT - LEFT) * (inside - self._first) / (self._last - self._first)


def _line(each: Estimate, places: _Places, null: float | None) -> Markup:
    value = each.value or 0.0
    parts = []
    if null is not None:
        parts.append(
            Markup('<line class="null" x1="{x:.2f}%" x2="{x:.2f}%" y1="0" y2="{bottom}"/>').format(
                x=places.x(null), bottom=HEIGHT
            )
        )
    if each.low is not None and each.high is not None:
        parts.append(
            Markup('<line x1="{low:.2f}%" x2="{high:.2f}%" y1="{y}" y2="{y}"/>').format(
                low=places.x(each.low), high=places.x(each.high), y=HEIGHT / 2
            )
        )
    parts.append(
        Markup('<circle cx="{x:.2f}%" cy="{y}" r="4"/>').format(x=places.x(value), y=HEIGHT / 2)
    )
    return Markup(
        '<svg class="interval style-0" width="100%" height="{height}" aria-hidden="true">'
        "{parts}</svg>"
    ).format(height=HEIGHT, parts=Markup("").join(parts))


def _axis(ticks: Sequence[float], places: _Places) -> Markup:
    """Numbers below the lines; every second one where there are more than five."""
    chosen = ticks if len(ticks) <= 5 else ticks[::2]
    last = len(chosen) - 1
    anchors = ["start" if not i else "end" if i == last else "middle" for i in range(len(chosen))]
    labels = [
        Markup('<text x="{x:.2f}%" y="14" text-anchor="{anchor}">{label}</text>').format(
            x=places.x(tick), anchor=anchor, label=axis_ticks.shown(tick).replace("-", "−")
        )
        for tick, anchor in zip(chosen, anchors, strict=True)
    ]
    return Markup(
        '<svg class="interval" width="100%" height="{height}" aria-hidden="true">{labels}</svg>'
    ).format(height=HEIGHT, labels=Markup("").join(labels))
