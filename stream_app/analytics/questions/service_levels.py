"""Question 5: service levels, and whether something changed at a date.

Times and shares by week; for a date, an interrupted time series (segmented regression: level and
slope before, change of both from then on; Bernal, Cummins & Gasparrini 2017). Measures of sessions
are compared within counsellors, so that joining and leaving is not taken for a change. Weeks have
effects that everybody shares (``common_time``), and the same change is looked for at other dates.
Where one team was trained, the others are the comparison.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from stream_app.analytics.questions import progress
from stream_app.analytics.questions.clustered import (
    FEWEST_CLUSTERS,
    Fit,
    NotEstimable,
    Term,
    dummies,
    gee,
)
from stream_app.analytics.questions.common_time import (
    CANDIDATE,
    DAYS_A_WEEK,
    Design,
    Fitted,
    Panel,
    confounders,
    season,
    too_short,
    weeks_from,
)
from stream_app.analytics.questions.frames import DAYS_A_MONTH, Frames
from stream_app.analytics.questions.groups import begin, blank, curves, estimated, size_of
from stream_app.analytics.questions.over_time import by_week
from stream_app.analytics.questions.result import ALL, Analysis, Context, Curve, Estimate, Texts
from stream_app.core.measures.catalogue import Use, units
from stream_app.store.database.judgements import JUDGED, JUSTIFIED

QUESTION: Final = "service-levels"
OF_SESSIONS: Final = {
    "first_answer": "seconds",
    "looked_at": "share of sessions",
    **units(Use.SERVICE_LEVELS),
}
OF_ALERTS: Final = {"acknowledge_minutes": "minutes", "acknowledged": "share of alerts"}
PRECISION: Final = "precision"
MEASURES: Final = (*OF_SESSIONS, *OF_ALERTS, PRECISION)
JUMP: Final = "change at the date"
SLOPE: Final = "change of the slope from then on"
PLACEBO: Final = "share of other dates with a change as clear"
APART: Final = "difference of the slopes before the date"
TYPICAL: Final = "mean"
FEWEST_WEEKS: Final = 12
"""Fewest weeks with a session or alert on each side of the date."""
EVERY: Final = 4
"""Weeks from one of the other dates to the next."""
FAR: Final = 8
"""Weeks that the other dates keep from the date, and ``FEWEST_WEEKS`` from both ends."""
FEWEST_DATES: Final = 5
MOST_FOUND: Final = 0.25
"""Share of other dates with a clear change above which the change at the date means nothing."""
SIGNIFICANT: Final = 0.05
RATIOS: Final = ("first_answer", "acknowledge_minutes")
"""Times: analysed as logarithms."""
SHORTEST: Final = {"first_answer": 1.0, "acknowledge_minutes": 1 / 60}
UNSCORED: Final = ("first_answer", "looked_at")
"""Measures of sessions that are no model's."""
TEXTS: Final = Texts(
    title="Service levels",
    about=(
        "The change at a date is what remains after the trend before it, the season and the mix of "
        "channels and domains are taken into account. It shows that something changed then, not "
        "what changed it: another change in the same week looks the same. Beside it stands how "
        "often other dates, where nothing is known, show a change as clear."
    ),
    method=(
        "Means with intervals clustered by counsellor; shares of alerts with Wilson intervals. "
        "Interrupted time series within counsellors: shared effects of weeks (autoregression of "
        "first order, restricted likelihood), a yearly wave, and Mancl-DeRouen covariance by "
        "counsellor; Student's t. With a trained team: difference in differences with free "
        "effects of weeks. Times are analysed as logarithms and reported as ratios."
    ),
    source="Bernal, Cummins & Gasparrini 2017 (interrupted time series)",
)


@dataclass(frozen=True, slots=True)
class Change:
    """A date from which something is different, for everybody or for a team."""

    at: pd.Timestamp
    trained: str | None = None


def analyse(
    frames: Frames,
    context: Context,
    *,
    at: datetime | None = None,
    measures: tuple[str, ...] = MEASURES,
    trained: str | None = None,
) -> Analysis:
    """Service levels by week; ``at``: the date of a change, of the team ``trained`` or of all."""
    found = begin(frames, context, QUESTION, TEXTS)
    sessions = with_numbers(frames.sessions)
    alerts = alert_table(frames)
    change = None if at is None else Change(pd.Timestamp(at), trained)
    estimates: list[Estimate] = []
    drawn: list[Curve] = []
    for name, unit in progress.each("measures of sessions", OF_SESSIONS.items()):
        if name in measures:
            estimates += _estimates(sessions, name, unit, change)
            drawn += _curves(sessions, name, unit)
    for name, unit in progress.each("measures of alerts", OF_ALERTS.items()):
        if name in measures and not alerts.empty:
            estimates += _estimates(alerts, name, unit, change)
            drawn += _curves(alerts, name, unit)
    if PRECISION in measures and not alerts.empty:
        estimates += _precision(alerts)
        judged = alerts.dropna(subset=[PRECISION])
        if not judged.empty:
            drawn += _curves(judged, PRECISION, "share of judged alerts", "rule")
    warnings = [] if change is None else _warnings(sessions, change)
    return replace(found, estimates=estimates, curves=drawn, warnings=warnings)


def _warnings(sessions: pd.DataFrame, change: Change) -> list[str]:
    if change.trained is not None or sessions.empty:
        return []
    return too_short(weeks_from(sessions["started_at"], change.at))


def with_numbers(sessions: pd.DataFrame) -> pd.DataFrame:
    """Shares as numbers."""
    return sessions.assign(looked_at=sessions["looked_at"].astype(float))


def alert_table(frames: Frames) -> pd.DataFrame:
    """Alerts with who and when, minutes to acknowledge, and whether they were justified."""
    names = ["session_id", "counsellor", "client", "started_at", "team", "channel", "domain"]
    facts = frames.sessions[names]
    table = frames.alerts.merge(facts, on="session_id")
    took = table["acknowledged_at"] - table["fired_at"]
    table["acknowledge_minutes"] = took.dt.total_seconds().clip(lower=1) / 60
    table["acknowledged"] = table["acknowledged_at"].notna().astype(float)
    judged = table["verdict"].isin(JUDGED)
    table[PRECISION] = table["verdict"].isin(JUSTIFIED).astype(float).where(judged)
    return table


def _curves(table: pd.DataFrame, name: str, unit: str, groups: str | None = None) -> list[Curve]:
    place, labels, axis = by_week(table)
    title = f"{name.replace('_', ' ')} by {axis}"
    return curves(table.assign(bin=place), name, groups, labels, title=title, axis=axis, unit=unit)


def _estimates(
    rows: pd.DataFrame, name: str, unit: str, change: Change | None
) -> Iterator[Estimate]:
    """The typical value of a measure; for a date, its change there."""
    table = rows.dropna(subset=[name])
    base = blank(table, name, ALL, unit)
    mean = partial(gee, table[name], pd.DataFrame(index=table.index), table["counsellor"])
    found = [replace(each, p=None) for each in estimated(mean, {"intercept": TYPICAL}, base)]
    if change is not None:
        found += _change(table, name, change, base)
    for each in found:
        yield each.checked(size_of(table))


def _change(table: pd.DataFrame, name: str, change: Change, base: Estimate) -> list[Estimate]:
    """Level and slope changes, and other dates next to them; ratios for times."""
    ratio = name in RATIOS
    level = replace(base, unit="ratio") if ratio else base
    slope = replace(base, unit="ratio per month" if ratio else f"{base.unit} per month")
    turn = _exp if ratio else float
    try:
        fit, others = changed(table, name, change)
    except NotEstimable as problem:
        return [replace(level, name=JUMP, problem=str(problem))]
    found = estimated(lambda: fit, {"after": JUMP}, level, turn)
    found += estimated(lambda: fit, {"later": SLOPE}, slope, turn)
    if change.trained is not None:
        found += estimated(lambda: fit, {"time": APART}, slope, turn)
    return [*found, _placebo(base, fit.terms["after"].p, others)]


def _placebo(base: Estimate, p: float, others: list[Term]) -> Estimate:
    found = replace(base, name=PLACEBO, unit="share of dates", n=len(others))
    if len(others) < FEWEST_DATES:
        return replace(found, problem="not enough data: too few other dates")
    return replace(found, value=sum(each.p <= p for each in others) / len(others))


def _exp(value: float) -> float:
    return float(np.exp(value))


@dataclass(frozen=True, slots=True)
class Series:
    """A measure's interrupted time series, fitted."""

    panel: Panel
    design: Design
    fitted: Fitted
    weeks: pd.Series
    inside: pd.Series

    @classmethod
    def of(cls, rows: pd.DataFrame, name: str, change: Change) -> "Series":
        """Terms ``after``, ``later`` and ``time`` (the slope before), within counsellors.

        Raises:
            NotEstimable: too little before or after, or the change has another explanation.
        """
        moments = rows["fired_at"] if "fired_at" in rows else rows["started_at"]
        weeks = weeks_from(moments, change.at)
        inside = pd.Series(1.0, index=rows.index)
        if change.trained is not None:
            inside = (rows["team"] == change.trained).astype(float)
        _check_both_sides(rows, weeks, inside)
        value = np.log(rows[name].clip(lower=SHORTEST[name])) if name in RATIOS else rows[name]
        months = weeks * DAYS_A_WEEK / DAYS_A_MONTH
        after = (weeks >= 0).astype(float)
        design = Design(
            wanted=pd.DataFrame({"after": after * inside, "later": months * after * inside}),
            base=pd.DataFrame({"time": months * inside}),
            others=_others(rows, name),
            season=season(weeks),
        )
        compared = None if change.trained is None else inside
        panel = Panel(value, rows["counsellor"], weeks, compared=compared)
        return cls(panel, design, panel.fit(design), weeks, inside)

    def elsewhere(self) -> list[Term]:
        """The same change at other dates, beside the one that is known."""
        first, last = int(self.weeks.min()) + FEWEST_WEEKS, int(self.weeks.max()) - FEWEST_WEEKS
        places = [at for at in range(first, last + 1, EVERY) if abs(at) >= FAR]
        found = [
            self.panel.tried(self.design, self.fitted, (self.weeks >= at) * self.inside)
            for at in places
        ]
        return [each[CANDIDATE] for each in found if each]


def _others(rows: pd.DataFrame, name: str) -> dict[str, pd.DataFrame]:
    found = confounders(rows, scored=name not in UNSCORED)
    if "rule" in rows:
        found["the mix of rules"] = dummies(rows["rule"], "rule")
    return found


def _check_both_sides(rows: pd.DataFrame, weeks: pd.Series, inside: pd.Series) -> None:
    chosen = inside > 0
    if (~chosen).any() and rows.loc[~chosen, "counsellor"].nunique() < FEWEST_CLUSTERS:
        raise NotEstimable(f"not enough data: fewer than {FEWEST_CLUSTERS} counsellors to compare")
    some = weeks[chosen]
    if min(some[some < 0].nunique(), some[some >= 0].nunique()) < FEWEST_WEEKS:
        raise NotEstimable(f"not enough data: fewer than {FEWEST_WEEKS} weeks before or after")
    both = (some >= 0).groupby(rows.loc[chosen, "counsellor"]).nunique()
    if (both > 1).sum() < FEWEST_CLUSTERS:
        raise NotEstimable("not enough data: fewer than 5 counsellors before and after the date")


def changed(rows: pd.DataFrame, name: str, change: Change) -> tuple[Fit, list[Term]]:
    """The change at a date of sessions or alerts (term ``after``), and those at other dates.

    Raises:
        NotEstimable: too little before or after; another explanation; many other dates show a
            change; or the compared teams drifted apart before.
    """
    series = Series.of(rows, name, change)
    fit, others = series.fitted.fit, series.elsewhere()
    if change.trained is not None and fit.terms["time"].p < SIGNIFICANT:
        raise NotEstimable("the teams drifted apart before the date already")
    clear = sum(each.p < SIGNIFICANT for each in others)
    if len(others) >= FEWEST_DATES and clear > MOST_FOUND * len(others):
        raise NotEstimable(f"{clear} of {len(others)} other dates show a change, too")
    return fit, others


def _precision(alerts: pd.DataFrame) -> Iterator[Estimate]:
    """Share of judged alerts that were justified, by rule, with Wilson's interval."""
    judged = alerts.dropna(subset=[PRECISION])
    for rule, some in judged.groupby("rule"):
        right = int(some[PRECISION].sum())
        low, high = proportion_confint(right, len(some), method="wilson")
        base = blank(some, PRECISION, str(rule), "share of judged alerts")
        share = right / len(some)
        found = replace(base, name=TYPICAL, value=share, low=float(low), high=float(high))
        yield found.checked(size_of(some))
