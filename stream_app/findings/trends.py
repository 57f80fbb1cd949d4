"""A counsellor's own trend: mean levels by week, with n and a 95 % interval.

The unit is the session: its mean level over the counsellor's own scored turns is one value, because
turns of one session are correlated. The interval is Student's for the mean of these values. Weeks
are separate for each bundle, so that a new model does not look like a change of the person.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import fmean, stdev
from typing import Final

from stream_app.contracts.scores import MECHANISMS
from stream_app.store.sessions.turn_levels import TurnLevels

MIN_SESSIONS: Final = 3
"""Weeks with fewer sessions have no mean."""
WEEKS: Final = 26


@dataclass(frozen=True, slots=True)
class Week:
    """One week's scores of one bundle; ``begins`` is its Monday, ``n`` the number of sessions.

    ``mean`` in [0, 2] with its interval; None if ``n`` is too small.
    """

    begins: date
    bundle: str
    n: int
    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Trend:
    """One mechanism by week; weeks without sessions are left out."""

    mechanism: str
    weeks: list[Week]

    @property
    def lines(self) -> list[list[Week]]:
        """Weeks that a chart connects: consecutive, each with a mean, of the same bundle."""
        found: list[list[Week]] = []
        for week in self.weeks:
            if week.mean is None:
                continue
            last = found[-1][-1] if found else None
            follows = last is not None and week.begins - last.begins == timedelta(weeks=1)
            if follows and last is not None and last.bundle == week.bundle:
                found[-1].append(week)
            else:
                found.append([week])
        return found


def trends(levels: Sequence[TurnLevels]) -> list[Trend]:
    """Trends of the three mechanisms over one counsellor's turns."""
    return [Trend(name, _weeks(name, levels)) for name in MECHANISMS]


def _weeks(name: str, levels: Sequence[TurnLevels]) -> list[Week]:
    turns: dict[tuple[date, str, str], list[int]] = defaultdict(list)
    for turn in levels:
        if name in turn.levels and name not in turn.abstained:
            begins = turn.started_at.date() - timedelta(days=turn.started_at.weekday())
            key = begins, turn.bundle, turn.session_id
            turns[key].append(turn.levels[name])
    sessions: dict[tuple[date, str], list[float]] = defaultdict(list)
    for (begins, bundle, _), values in turns.items():
        sessions[begins, bundle].append(fmean(values))
    return [_week(*key, values) for key, values in sorted(sessions.items())]


def _week(begins: date, bundle: str, means: list[float]) -> Week:
    n = len(means)
    if n < MIN_SESSIONS:
        return Week(begins, bundle, n, None, None, None)
    low, high = interval(means)
    return Week(begins, bundle, n, fmean(means), max(0.0, low), min(2.0, high))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Student's 95 % interval for the mean; needs at least two values."""
    from scipy.special import stdtrit  # noqa: PLC0415  # takes half a second

    mean, n = fmean(values), len(values)
    margin = float(stdtrit(n - 1, 0.975)) * stdev(values, mean) / math.sqrt(n)
    return mean - margin, mean + margin


def difference(after: Sequence[float], before: Sequence[float]) -> tuple[float, float, float]:
    """Difference of two means with Welch's 95 % interval; each needs at least two values."""
    from scipy.special import stdtrit  # noqa: PLC0415  # takes half a second

    squared = [stdev(values) ** 2 / len(values) for values in (after, before)]
    change, total = fmean(after) - fmean(before), sum(squared)
    if total == 0:
        return change, change, change
    terms = zip(squared, (len(after), len(before)), strict=True)
    freedom = total**2 / sum(each**2 / (n - 1) for each, n in terms)
    margin = float(stdtrit(freedom, 0.975)) * math.sqrt(total)
    return change, change - margin, change + margin
