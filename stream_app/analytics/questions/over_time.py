"""Question 1: does expressed empathy change with time on the platform?

After Sharma et al. (2020), section 7 (1) and appendix C: counsellors by the year in which they
began, only those with enough turns who stayed long enough. Because who stays differs from who
leaves, each change is split into a part within counsellors (how the same people change) and a part
between them (whether those with longer tenure differ); only the first can be learning.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import pandas as pd
from statsmodels.regression.mixed_linear_model import MixedLM
from statsmodels.tools import add_constant
from statsmodels.tools.sm_exceptions import ConvergenceWarning

from stream_app.analytics.questions import progress
from stream_app.analytics.questions.clustered import Fit, NotEstimable, Term, dummies, gee, terms
from stream_app.analytics.questions.common_time import (
    CANDIDATE,
    Design,
    Fitted,
    Panel,
    confounders,
    season,
    too_short,
    weeks_from,
)
from stream_app.analytics.questions.frames import Frames
from stream_app.analytics.questions.groups import (
    begin,
    blank,
    curves,
    estimated,
    hidden_estimate,
    size_of,
)
from stream_app.analytics.questions.result import (
    ALL,
    Analysis,
    Context,
    Curve,
    Estimate,
    Texts,
    hidden_groups,
)
from stream_app.core.measures.catalogue import Use, units

QUESTION: Final = "over-time"
MEASURES: Final = units(Use.OVER_TIME)
TEXTS: Final = Texts(
    title="Empathy over time",
    about=(
        "Change within counsellors is how the same people change per month since joining, beyond "
        "the season, the mix of channels and domains, and what all share in a week. The "
        "pooled trends also contain who stays: where the less empathic leave, they rise although "
        "nobody changes. Associations, not effects; not a performance rating."
    ),
    method=(
        "Change: sessions within counsellors, with shared effects of weeks (autoregression of "
        "first order, restricted likelihood), a yearly wave, and Mancl-DeRouen covariance by "
        "counsellor; t intervals. Means, difference between counsellors and pooled trends: "
        "generalised estimating equations, clustered by counsellor. Bands: bootstrap over "
        "counsellors. Check: the value of a mixed model with random intercepts."
    ),
    source="Sharma et al. 2020, section 7 (1) and appendix C",
)
WITHIN: Final = "change per month within counsellors"
BETWEEN: Final = "difference per month of mean tenure between counsellors"
POOLED: Final = "trend per month, each session counts once (includes who stays)"
POOLED_PEOPLE: Final = "trend per month, each counsellor counts once (includes who stays)"
SAME_MIX: Final = (
    "trend per month at the same mix of channels, domains and clients (includes who stays)"
)
MIXED: Final = "change per month within counsellors, mixed model"
MEAN: Final = "mean"
FEWEST_DAYS: Final = 182
STEPS_EVERY: Final = 4
"""Weeks from one date to the next where a sudden change is looked for."""
AT_LEAST: Final = 8
"""Weeks that these dates keep from both ends."""
SIGNIFICANT: Final = 0.05
CLEAR: Final = 0.005
"""p-value of a sudden change that is there beside a steady one."""
EPOCH: Final = pd.Timestamp(0, tz="UTC")


@dataclass(frozen=True, slots=True)
class Activity:
    """Minimum activity: the paper leaves out users with fewer posts or a shorter stay."""

    turns: int = 10
    days: int = FEWEST_DAYS


def active(sessions: pd.DataFrame, activity: Activity) -> pd.Series:
    """Rows of counsellors with the minimum activity within these sessions."""
    by = sessions.groupby("counsellor")
    turns = by["counsellor_turns"].transform("sum")
    stay = by["started_at"].transform("max") - by["started_at"].transform("min")
    return (turns >= activity.turns) & (stay >= pd.Timedelta(days=activity.days))


def analyse(
    frames: Frames,
    context: Context,
    *,
    measures: Sequence[str] = tuple(MEASURES),
    activity: Activity = Activity(),
    calendar: bool = False,
) -> Analysis:
    """Estimates for all and by joining year, and curves by month since joining.

    ``calendar``: curves by calendar week instead.
    """
    found = begin(frames, context, QUESTION, TEXTS)
    everyone = frames.sessions
    chosen = everyone[active(everyone, activity)]
    notes = [
        f"Minimum activity: {activity.turns} turns and {activity.days} days between the first and "
        "the last session; the pooled trend has no minimum.",
        "A counsellor joins with the first stored session: after a purge of old sessions, or "
        "where Rapport was introduced late, tenure counts from then.",
    ]
    if chosen.empty:
        notes.append(
            f"No counsellor has the minimum activity (longest stay: {_longest(everyone)})."
        )
        return replace(found, notes=notes)
    estimates = [
        each
        for name in progress.each("measures", measures)
        for each in _estimates(everyone, chosen, name)
    ]
    drawn = [curve for name in measures for curve in _curves(chosen, name, calendar)]
    warnings = too_short(weeks_from(chosen["started_at"], EPOCH))
    notes += simpsons(estimates)
    return replace(found, estimates=estimates, curves=drawn, notes=notes, warnings=warnings)


def _longest(sessions: pd.DataFrame) -> str:
    if sessions.empty:
        return "none"
    by = sessions.groupby("counsellor")["started_at"]
    return f"{int((by.max() - by.min()).max().days)} days"


def _estimates(everyone: pd.DataFrame, chosen: pd.DataFrame, measure: str) -> Iterator[Estimate]:
    known = chosen.dropna(subset=[measure])
    cohorts = {str(year): part for year, part in known.groupby("cohort")}
    gone = hidden_groups({name: size_of(part) for name, part in cohorts.items()}, size_of(known))
    for name, part in {ALL: known, **cohorts}.items():
        if name in gone:
            yield hidden_estimate(WITHIN, measure, name)
            continue
        unit = MEASURES[measure]
        cells = monthly(part, measure)
        base = blank(part, measure, name, f"{unit} per month")
        level = estimated(partial(mean_fit, cells, measure), {"intercept": MEAN}, base)
        yield from (replace(each, unit=unit, p=None) for each in level)
        yield from estimated(partial(within_fit, part, measure), {"months": WITHIN}, base)
        yield from estimated(
            partial(between_fit, cells, measure), {"months:between": BETWEEN}, base
        )
        if name == ALL:
            yield _mixed(base, cells, measure)
            yield from _pooled(everyone.dropna(subset=[measure]), measure, base.unit)


def _pooled(everyone: pd.DataFrame, measure: str, unit: str) -> Iterator[Estimate]:
    """Trends side by side: where they differ, a part of the sessions or people makes the first."""
    base = blank(everyone, measure, ALL, unit)
    pairs = ((pooled_fit, POOLED), (same_mix_fit, SAME_MIX), (people_fit, POOLED_PEOPLE))
    for fit, name in pairs:
        for each in estimated(partial(fit, everyone, measure), {"months": name}, base):
            yield replace(each, p=None)


def monthly(sessions: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Means by counsellor, month since joining and bundle: the unit of the models."""
    keys = {
        "counsellor": sessions["counsellor"],
        "month": np.floor(sessions["months"]),
        "bundle": sessions["bundle"],
    }
    by = sessions[[measure, "months"]].groupby(list(keys.values()), sort=True).mean()
    return by.rename_axis(list(keys)).reset_index()


def decomposed(columns: pd.DataFrame, clusters: pd.Series) -> pd.DataFrame:
    """Each column as the cluster's mean (``:between``) and the deviation from it (``:within``)."""
    means = columns.groupby(clusters.to_numpy()).transform("mean")
    return (columns - means).add_suffix(":within").join(means.add_suffix(":between"))


def within_fit(sessions: pd.DataFrame, measure: str) -> Fit:
    """Term ``months``: the steady change of the same counsellors.

    Raises:
        NotEstimable: too little data, another explanation, or a change at one date.
    """
    weeks = weeks_from(sessions["started_at"], EPOCH)
    design = Design(wanted=sessions[["months"]], others=confounders(sessions), season=season(weeks))
    panel = Panel(sessions[measure], sessions["counsellor"], weeks)
    fitted = panel.fit(design)
    _check_steady(panel, design, fitted, weeks)
    return fitted.fit


def _check_steady(panel: Panel, design: Design, fitted: Fitted, weeks: pd.Series) -> None:
    """A sudden change must not be told as a slope."""
    steady = fitted.fit.terms["months"].p < SIGNIFICANT
    clear: dict[int, float] = {}
    for at in range(int(weeks.min()) + AT_LEAST, int(weeks.max()) - AT_LEAST + 1, STEPS_EVERY):
        found = panel.tried(design, fitted, (weeks >= at).astype(float))
        if not found:
            continue
        step = found[CANDIDATE].p
        instead = steady and step < SIGNIFICANT <= found["months"].p
        if step < CLEAR or instead:
            clear[at] = step
    if clear:
        day = EPOCH + pd.Timedelta(weeks=min(clear, key=lambda at: clear[at]))
        raise NotEstimable(f"can't be told apart from a sudden change about {day:%Y-%m-%d}")


def between_fit(cells: pd.DataFrame, measure: str) -> Fit:
    """Terms ``months:within`` and ``months:between``, adjusted for the bundles; of months.

    Raises:
        NotEstimable: too few counsellors or no variation.
    """
    columns = cells[["months"]].join(dummies(cells["bundle"], "bundle"))
    return gee(cells[measure], decomposed(columns, cells["counsellor"]), cells["counsellor"])


def pooled_fit(sessions: pd.DataFrame, measure: str) -> Fit:
    """The naive trend of sessions: term ``months``."""
    columns = sessions[["months"]].join(dummies(sessions["bundle"], "bundle"))
    return gee(sessions[measure], columns, sessions["counsellor"], clients=sessions["client"])


def same_mix_fit(sessions: pd.DataFrame, measure: str) -> Fit:
    """The trend of sessions if channels, domains, and first and later sessions had kept their mix.

    Term ``months``.
    """
    parts = [dummies(sessions[name], name) for name in ("bundle", "channel", "domain")]
    columns = pd.concat([sessions[["months"]], *parts], axis=1)
    order = sessions.sort_values("started_at")
    columns["returning"] = order.duplicated("client").astype(float)
    return gee(sessions[measure], columns, sessions["counsellor"], clients=sessions["client"])


def simpsons(estimates: Sequence[Estimate]) -> Iterator[str]:
    """Measures whose pooled trend is another one at the same mix, or if people count once."""
    found = {(each.measure, each.name): each for each in estimates if each.group == ALL}
    for (measure, name), pooled in found.items():
        if name != POOLED or pooled.value is None or not _is_clear(pooled):
            continue
        for other in (SAME_MIX, POOLED_PEOPLE):
            beside = found.get((measure, other))
            if beside is None or beside.value is None:
                continue
            if beside.value * pooled.value <= 0 or not _is_clear(beside):
                yield (
                    f"{measure.replace('_', ' ')}: the trend of all sessions, {pooled.value:+.2g} "
                    f"per month, is not there in the {other}, {beside.value:+.2g}: it comes from "
                    "which sessions there were, and not from a change of how people answer "
                    "(Simpson's paradox)."
                )


def _is_clear(each: Estimate) -> bool:
    return each.low is not None and each.high is not None and each.low * each.high > 0


def people_fit(sessions: pd.DataFrame, measure: str) -> Fit:
    """The naive trend of counsellors: term ``months``; many sessions weigh no more than few."""
    columns = sessions[["months"]].join(dummies(sessions["bundle"], "bundle"))
    weights = 1 / sessions.groupby("counsellor")[measure].transform("size")
    return gee(sessions[measure], columns, sessions["counsellor"], weights=weights)


def mean_fit(cells: pd.DataFrame, measure: str) -> Fit:
    """The mean over counsellor-months: term ``intercept``."""
    return gee(cells[measure], pd.DataFrame(index=cells.index), cells["counsellor"])


def mixed_fit(cells: pd.DataFrame, measure: str) -> Term:
    """The change within counsellors by a linear mixed model with random intercepts.

    Raises:
        NotEstimable: no optimiser converges.
    """
    columns = cells[["months"]].join(dummies(cells["bundle"], "bundle"))
    design = decomposed(columns, cells["counsellor"])
    design = design.loc[:, design.std() > 1e-9]
    if "months:within" not in design:
        raise NotEstimable("not enough data: one month each")
    exog = add_constant(design.to_numpy(), has_constant="add")
    place = 1 + list(design.columns).index("months:within")
    for optimiser in ("lbfgs", "bfgs", "powell"):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            warnings.filterwarnings("ignore", category=UserWarning)
            warnings.filterwarnings("ignore", category=RuntimeWarning)
            try:
                model = MixedLM(cells[measure].to_numpy(), exog, cells["counsellor"].to_numpy())
                fit = model.fit(reml=True, method=optimiser)
                error = float(np.asarray(fit.bse_fe)[place])
            except (ConvergenceWarning, np.linalg.LinAlgError, ValueError):
                continue
        if fit.converged and np.isfinite(error):
            freedom = cells["counsellor"].nunique() - 1
            return terms(["x"], [float(np.asarray(fit.fe_params)[place])], [error], freedom)["x"]
    raise NotEstimable("the mixed model does not converge; the estimate above stands")


def _mixed(base: Estimate, cells: pd.DataFrame, measure: str) -> Estimate:
    found = replace(base, name=MIXED)
    try:
        term = mixed_fit(cells, measure)
    except NotEstimable as problem:
        return replace(found, problem=str(problem))
    return replace(found, value=term.value, low=term.low, high=term.high, error=term.error)


def _curves(chosen: pd.DataFrame, measure: str, calendar: bool) -> list[Curve]:
    place, labels, axis = by_week(chosen) if calendar else by_month(chosen)
    return curves(
        chosen.assign(bin=place),
        measure,
        None if calendar else "cohort",
        labels,
        title=f"{measure.replace('_', ' ')} by {axis}",
        axis=axis,
        unit=MEASURES[measure],
    )


def by_month(sessions: pd.DataFrame) -> tuple[pd.Series, dict[float, str], str]:
    """Bins of months since joining; of three months where there are more than two years."""
    width = 1 if sessions["months"].max() < 24 else 3
    place = np.floor(sessions["months"] / width) * width
    names = {
        at: f"month {at:.0f}" if width == 1 else f"months {at:.0f}-{at + 2:.0f}" for at in place
    }
    return place, names, "months since joining"


def by_week(sessions: pd.DataFrame) -> tuple[pd.Series, dict[float, str], str]:
    """Bins of calendar weeks, as days from 1970-01-01 to their Monday."""
    days = np.floor((sessions["started_at"] - EPOCH).dt.total_seconds() / 86400)
    place = days - (days + 3) % 7
    return place, {at: f"{EPOCH + pd.Timedelta(days=at):%Y-%m-%d}" for at in place}, "calendar week"
