"""Question 5: service levels, and whether something changed at a date.

Times and shares by week; for a date, an interrupted time series (segmented regression: level and
slope before, change of both from then on; Bernal, Cummins & Gasparrini 2017). Measures of sessions
are compared within counsellors, so that joining and leaving is not taken for a change; alerts
are clustered in blocks of four weeks, because weeks that follow each other are alike.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from stream_app.analytics.clustered import Fit, NotEstimable, dummies, gee
from stream_app.analytics.frames import DAYS_A_MONTH, Frames
from stream_app.analytics.groups import begin, blank, curves, estimated, size_of
from stream_app.analytics.over_time import by_week, decomposed
from stream_app.analytics.result import ALL, Analysis, Context, Curve, Estimate, Texts
from stream_app.contracts.scores import MECHANISMS
from stream_app.store.judgements import JUDGED, JUSTIFIED

Series = Callable[[pd.DataFrame, str, datetime], Fit]
QUESTION: Final = "service-levels"
OF_SESSIONS: Final = {
    "first_answer": "seconds",
    "looked_at": "share of sessions",
    "empathy_index": "index (0-1)",
    **dict.fromkeys(MECHANISMS, "level (0-2)"),
}
OF_ALERTS: Final = {"acknowledge_minutes": "minutes", "acknowledged": "share of alerts"}
PRECISION: Final = "precision"
MEASURES: Final = (*OF_SESSIONS, *OF_ALERTS, PRECISION)
JUMP: Final = "change at the date"
SLOPE: Final = "change of the slope from then on"
TYPICAL: Final = "mean"
FEWEST_WEEKS: Final = 12
"""With an alert, on each side of the date."""
BLOCK: Final = 4
"""Weeks that count as one cluster of alerts."""
TEXTS: Final = Texts(
    title="Service levels",
    about=(
        "With --at DATE, the change at the date is what remains after the trend before it is "
        "continued. It shows that something changed then, not what changed it: another change in "
        "the same week looks the same."
    ),
    method=(
        "Means with intervals clustered by counsellor; shares of alerts with Wilson intervals. "
        "Interrupted time series: sessions by generalised estimating equations with deviations "
        "from each counsellor's mean; alerts by the same, clustered in blocks of four weeks. "
        "Mancl-DeRouen covariance, Student's t. Times are analysed as logarithms and reported "
        "as ratios."
    ),
    source="Bernal, Cummins & Gasparrini 2017 (interrupted time series)",
)


def analyse(
    frames: Frames,
    context: Context,
    *,
    at: datetime | None = None,
    measures: tuple[str, ...] = MEASURES,
) -> Analysis:
    """Service levels by week; ``at``: the date of a change."""
    found = begin(frames, context, QUESTION, TEXTS)
    sessions = with_numbers(frames.sessions)
    alerts = alert_table(frames)
    estimates: list[Estimate] = []
    drawn: list[Curve] = []
    for name, unit in OF_SESSIONS.items():
        if name in measures:
            estimates += _estimates(sessions, name, unit, at, interrupted)
            drawn += _curves(sessions, name, unit)
    for name, unit in OF_ALERTS.items():
        if name in measures and not alerts.empty:
            estimates += _estimates(alerts, name, unit, at, interrupted_alerts)
            drawn += _curves(alerts, name, unit)
    if PRECISION in measures and not alerts.empty:
        estimates += _precision(alerts)
        judged = alerts.dropna(subset=[PRECISION])
        if not judged.empty:
            drawn += _curves(judged, PRECISION, "share of judged alerts", "rule")
    return replace(found, estimates=estimates, curves=drawn)


def with_numbers(sessions: pd.DataFrame) -> pd.DataFrame:
    """Shares as numbers."""
    return sessions.assign(looked_at=sessions["looked_at"].astype(float))


def alert_table(frames: Frames) -> pd.DataFrame:
    """Alerts with who and when, minutes to acknowledge, and whether they were justified."""
    facts = frames.sessions[["session_id", "counsellor", "client", "started_at"]]
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
    rows: pd.DataFrame, name: str, unit: str, at: datetime | None, series: Series
) -> Iterator[Estimate]:
    """The typical value of a measure; for a date, its change there by this time series."""
    table = rows.dropna(subset=[name])
    base = blank(table, name, ALL, unit)
    mean = partial(gee, table[name], pd.DataFrame(index=table.index), table["counsellor"])
    found = estimated(mean, {"intercept": TYPICAL}, base)
    if at is not None:
        found += _change(partial(series, table, name, at), name, base)
    for each in found:
        yield each.checked(size_of(table))


def _change(fit: Callable[[], Fit], name: str, base: Estimate) -> list[Estimate]:
    """Level and slope changes; ratios for times."""
    if name in ("first_answer", "acknowledge_minutes"):
        jump = estimated(fit, {"after": JUMP}, replace(base, unit="ratio"), _exp)
        return jump + estimated(fit, {"later": SLOPE}, replace(base, unit="ratio per month"), _exp)
    unit = replace(base, unit=f"{base.unit} per month")
    return estimated(fit, {"after": JUMP}, base) + estimated(fit, {"later": SLOPE}, unit)


def _exp(value: float) -> float:
    return float(np.exp(value))


def _segments(moments: pd.Series, at: datetime) -> pd.DataFrame:
    """``time``: months from the date; ``after``: 1 from then on; ``later``: months since then."""
    time = (moments - pd.Timestamp(at)).dt.total_seconds() / 86400 / DAYS_A_MONTH
    after = (time >= 0).astype(float)
    return pd.DataFrame({"time": time, "after": after, "later": time * after})


def interrupted(sessions: pd.DataFrame, name: str, at: datetime) -> Fit:
    """Segmented regression within counsellors: terms ``after`` and ``later``.

    Raises:
        NotEstimable: too few counsellors were here before and after.
    """
    value = np.log(sessions[name].clip(lower=1)) if name == "first_answer" else sessions[name]
    columns = _segments(sessions["started_at"], at).join(dummies(sessions["bundle"], "bundle"))
    both = columns["after"].groupby(sessions["counsellor"]).nunique()
    if (both > 1).sum() < 5:
        raise NotEstimable("not enough data: fewer than 5 counsellors before and after the date")
    fit = gee(value, decomposed(columns, sessions["counsellor"]), sessions["counsellor"])
    known = {key.removesuffix(":within"): term for key, term in fit.terms.items()}
    return Fit(known, fit.n, fit.clusters)


def interrupted_alerts(table: pd.DataFrame, name: str, at: datetime) -> Fit:
    """Segmented regression of alerts, clustered by four-week blocks: ``after`` and ``later``.

    Raises:
        NotEstimable: too few weeks before or after.
    """
    value = np.log(table[name]) if name == "acknowledge_minutes" else table[name]
    columns = _segments(table["fired_at"], at)
    weeks = np.floor((table["fired_at"] - pd.Timestamp(at)).dt.total_seconds() / 86400 / 7)
    if min(weeks[weeks < 0].nunique(), weeks[weeks >= 0].nunique()) < FEWEST_WEEKS:
        raise NotEstimable(f"not enough data: fewer than {FEWEST_WEEKS} weeks before or after")
    return gee(value, columns, np.floor(weeks / BLOCK))


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
