"""A counsellor's trend as SVG: weekly means with intervals, over an axis of dates.

The line breaks at missing weeks and where the model changes. As in ``charts``, x positions are
percentages and y positions pixels. A table next to the chart has the same numbers.
"""

from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from stream_app.findings.trends import Trend, Week
from stream_app.web.console.formatting import counted, number, plain

HEIGHT: Final = 176
TOP: Final = 12
PLOT: Final = 112
LEVELS: Final = (0, 1, 2)
LEFT, RIGHT = 5.0, 97.0
AXIS: Final = "week beginning; mean level, 0 (none) to 2 (strong)"
MOST_DATES: Final = 4


def chart(trend: Trend) -> Markup:
    """Draw the chart; weeks with too few sessions have no mean and are not drawn."""
    shown = [week for week in trend.weeks if week.mean is not None]
    first = min((week.begins for week in trend.weeks), default=date.min)
    last = max((week.begins for week in trend.weeks), default=date.min)

    def x(week: Week) -> str:
        days = (last - first).days
        share = (week.begins - first).days / days if days else 0.5
        return f"{LEFT + (RIGHT - LEFT) * share:.2f}%"

    parts = [_scale(), _dates(sorted({week.begins: x(week) for week in trend.weeks}.items()))]
    for line in trend.lines:
        parts += [_join(x(one), one, x(other), other) for one, other in pairwise(line)]
    parts += [_mean(x(week), week) for week in shown]
    parts += [
        Markup('<g class="model"><line x1="{x}" x2="{x}" y1="0" y2="{h}"/></g>').format(
            x=x(week), h=TOP + PLOT
        )
        for before, week in pairwise(trend.weeks)
        if before.bundle != week.bundle
    ]
    return Markup(
        '<svg class="trend" role="img" aria-label="{said}" width="100%" height="{height}">'
        "{parts}</svg>"
    ).format(said=in_words(trend), height=HEIGHT, parts=Markup("").join(parts))


def in_words(trend: Trend) -> str:
    """A text alternative to the chart."""
    shown = [week for week in trend.weeks if week.mean is not None]
    name = plain(trend.mechanism)
    if not shown:
        return f"{name}: no week has enough sessions for a mean"
    latest = shown[-1]
    models = len({week.bundle for week in trend.weeks})
    broken = (
        f", scored by {models} models (the line breaks where the model changes)"
        if models > 1
        else ""
    )
    return (
        f"{name}, mean level by week over {counted(len(shown), 'week')} with enough "
        f"sessions{broken}; in the week of {latest.begins:%d %b %Y} {number(latest.mean)}, "
        f"interval {number(latest.low)} to {number(latest.high)}, {latest.n} sessions"
    )


def _scale() -> Markup:
    rows = [
        Markup(
            '<line class="grid" x1="{left}%" x2="100%" y1="{y}" y2="{y}"/>'
            '<text x="0" y="{text}" aria-hidden="true">{level}</text>'
        ).format(left=LEFT - 2, y=_y(level), text=_y(level, 4), level=level)
        for level in LEVELS
    ]
    return Markup("").join(rows)


def _dates(weeks: Sequence[tuple[date, str]]) -> Markup:
    """Ticks and dates of up to ``MOST_DATES`` weeks, among them the first and the last."""
    last = len(weeks) - 1
    chosen = sorted({round(last * place / (MOST_DATES - 1)) for place in range(MOST_DATES)})
    if last < 0:
        return Markup("")
    year = len({begins.year for begins, _ in weeks}) > 1
    parts = [
        Markup(
            '<g class="date"><line x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'
            '<text x="{x}" y="{y}" text-anchor="{anchor}" aria-hidden="true">{label}</text></g>'
        ).format(
            x=weeks[place][1],
            top=TOP + PLOT,
            bottom=TOP + PLOT + 5,
            y=TOP + PLOT + 19,
            anchor="start" if place == 0 < last else "end" if place == last > 0 else "middle",
            label=f"{weeks[place][0]:%d %b %Y}" if year else f"{weeks[place][0]:%d %b}",
        )
        for place in chosen
    ]
    words = Markup('<text class="axis" x="{}%" y="{}" aria-hidden="true">{}</text>').format(
        LEFT, HEIGHT - 6, AXIS
    )
    return Markup("").join([*parts, words])


def _mean(x: str, week: Week) -> Markup:
    title = (
        f"Week of {week.begins:%d %b %Y}: {number(week.mean)} "
        f"[{number(week.low)}, {number(week.high)}], n {week.n}, {week.bundle}"
    )
    return Markup(
        '<g class="mean"><title>{title}</title><line x1="{x}" x2="{x}" y1="{low}" y2="{high}"/>'
        '<circle cx="{x}" cy="{mean}" r="4"/></g>'
    ).format(title=title, x=x, low=_y(week.low), high=_y(week.high), mean=_y(week.mean))


def _join(x1: str, one: Week, x2: str, other: Week) -> Markup:
    return Markup('<line class="line" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(
        x1, _y(one.mean), x2, _y(other.mean)
    )


def _y(level: float | None, lower: int = 0) -> str:
    return f"{TOP + PLOT * (1 - (level or 0.0) / 2) + lower:.1f}"
