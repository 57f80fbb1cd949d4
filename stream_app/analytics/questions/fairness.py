"""Question 7: are errors and alerts equally frequent in all subgroups?

By channel, language tag (a proxy of dialect) and, where a file of self-declared attributes is
configured, the client's attribute. Rates have intervals, differences from all others are tested,
and a subgroup about too few people gets "not enough data" and no figure; nor do others whose
figures would be its complement.

Where few things happened, a variance from the data says nothing (none at all: it is 0). Then rates
have Wilson intervals and differences Newcombe's with Fisher's exact test, of numbers divided by how
much alike a counsellor's rows are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd
from scipy.stats import fisher_exact
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from stream_app.analytics.questions import progress
from stream_app.analytics.questions.clustered import NotEstimable, gee
from stream_app.analytics.questions.expressed_perceived import corrected
from stream_app.analytics.questions.frames import Frames
from stream_app.analytics.questions.groups import begin, blank, size_of
from stream_app.analytics.questions.head_labels import ABSTAINED, HEAD
from stream_app.analytics.questions.result import Analysis, Context, Estimate, Texts, hidden_groups
from stream_app.analytics.questions.service_levels import PRECISION, alert_table
from stream_app.analytics.questions.suppression import CellSize
from stream_app.contracts.events import Role

QUESTION: Final = "fairness"
NOT_ENOUGH: Final = "not enough data"
FEWEST_ROWS: Final = 30
FEWEST_EVENTS: Final = 10
"""Fewer events, or fewer rows without one, get no interval from the variance in the data."""
SIGNIFICANT: Final = 0.05
MARGIN: Final = 0.05
"""A difference below it is small, however certain."""
POINTS: Final = f"{MARGIN * 100:.0f} percentage points"
"""The same in words."""
RATE: Final = "rate"
DIFFERENCE: Final = "difference from all others"
TEXTS: Final = Texts(
    title="Error and alert rates by subgroup",
    about=(
        "Errors: the model's prediction differs from a person's rating. An alert rate may differ "
        "because sessions differ; an error rate that differs means that the model serves a "
        "subgroup worse. No difference found is not a proof of none: look at the interval."
    ),
    method=(
        "Means of 0/1 clustered by counsellor (generalised estimating equations, Mancl-DeRouen "
        "covariance, Student's t; intervals cut at 0 and 1); where fewer than 10 happened, or did "
        "not happen, Wilson and Newcombe intervals and Fisher's test of effective numbers; Holm's "
        "correction over all differences. Figures need 30 rows, 11 clients and 5 counsellors."
    ),
    source="the practice of clustered rates; no single paper",
)


@dataclass(frozen=True, slots=True)
class Rate:
    """Rows with a 0/1 ``column``, a session's facts and people."""

    name: str
    rows: pd.DataFrame
    column: str


def analyse(
    frames: Frames, context: Context, attributes: Mapping[str, str] | None = None
) -> Analysis:
    """Rates by subgroup and differences from the others."""
    found = begin(frames, context, QUESTION, TEXTS)
    sessions = frames.sessions.copy()
    groupings = ["channel", "lang"]
    if attributes:
        sessions["client attribute"] = sessions["client"].map(dict(attributes))
        groupings.append("client attribute")
    rates = [rate for rate in _rates(frames, sessions) if not rate.rows.empty]
    estimates = [
        each
        for rate in progress.each("rates", rates)
        for grouping in groupings
        for each in _by_group(rate, grouping)
    ]
    estimates = corrected(estimates)
    notes = ["The language tag stands for dialect only as far as platforms set it."]
    if not attributes:
        notes.append("No file of self-declared attributes is configured.")
    notes += [
        f"{each.measure}, {each.group}: beyond chance but small, less than {POINTS}."
        for each in estimates
        if is_small(each)
    ]
    return replace(found, estimates=estimates, notes=notes)


def is_small(each: Estimate) -> bool:
    """Whether even the interval's far end is within the margin, although 0 is outside of it."""
    if each.name != DIFFERENCE or each.p_adjusted is None or each.p_adjusted >= SIGNIFICANT:
        return False
    return max(abs(each.low or 0.0), abs(each.high or 0.0)) < MARGIN


def _rates(frames: Frames, sessions: pd.DataFrame) -> Iterator[Rate]:
    alerted = sessions["session_id"].isin(set(frames.alerts["session_id"])).astype(float)
    yield Rate("sessions with an alert", sessions.assign(happened=alerted), "happened")
    facts = sessions.drop(columns=["bundle", "turns", "started_at"])
    alerts = alert_table(frames).dropna(subset=[PRECISION])
    names = ["session_id", "bundle", PRECISION]
    false = alerts[names].assign(happened=1 - alerts[PRECISION]).merge(facts, on="session_id")
    yield Rate("alerts judged false", false, "happened")
    rated = frames.ratings.dropna(subset=["model"])
    rated = rated.merge(sessions.drop(columns=["turns"]), on="session_id")
    for head, some in rated.groupby("head"):
        wrong = (some["model"] != some["value"]).astype(float)
        yield Rate(f"errors of {head}".replace("_", " "), some.assign(happened=wrong), "happened")
    said = frames.turns[frames.turns["role"] == Role.COUNSELLOR.value]
    heads = [name for name in said.columns if name.startswith(HEAD)]
    if heads:
        gone = (said[heads] == ABSTAINED).any(axis=1).astype(float)
        turns = said[["session_id", "bundle"]].assign(happened=gone)
        yield Rate("turns with an abstention", turns.merge(facts, on="session_id"), "happened")


def _by_group(rate: Rate, grouping: str) -> Iterator[Estimate]:
    rows = rate.rows.dropna(subset=[grouping])
    parts = {str(name): part for name, part in rows.groupby(grouping)}
    if len(parts) < 2:
        return
    withheld = _withheld(parts, rows)
    alike = _alike(rows, rate.column)
    for name, part in parts.items():
        group = f"{grouping} {name}"
        base = blank(part, rate.name, group, "share")
        if name in withheld:
            yield replace(base, name=RATE, problem=NOT_ENOUGH, n=None, counsellors=None)
            continue
        yield _mean(part[rate.column], part["counsellor"], alike, base)
        if not withheld and (len(parts) > 2 or name == min(parts)):
            inside = rows[grouping].astype(str) == name
            yield _difference(rows, rate.column, inside, alike, base)


def _withheld(parts: Mapping[str, pd.DataFrame], rows: pd.DataFrame) -> set[str]:
    """Groups without a figure: too small, or the complement of one that is.

    A group of few rows counts as one of few people, so that another one is withheld with it.
    """
    few = CellSize(1, 1)
    sizes = {
        name: size_of(part) if len(part) >= FEWEST_ROWS else few for name, part in parts.items()
    }
    return hidden_groups(sizes, size_of(rows))


def _alike(rows: pd.DataFrame, column: str) -> float:
    """How many rows of a counsellor say as much as one that is independent; at least 1."""
    happened = rows[column]
    spread = float(happened.mean() * (1 - happened.mean())) / max(len(rows), 1)
    people = rows.groupby("counsellor")[column].agg(["sum", "size"])
    if spread == 0 or len(people) < 2:
        return 1.0
    apart = people["sum"] - people["size"] * happened.mean()
    clustered = float((apart**2).sum()) * len(people) / (len(people) - 1) / len(rows) ** 2
    return max(1.0, clustered / spread)


def _is_rare(happened: pd.Series) -> bool:
    return bool(min(happened.sum(), len(happened) - happened.sum()) < FEWEST_EVENTS)


def _mean(happened: pd.Series, people: pd.Series, alike: float, base: Estimate) -> Estimate:
    value = float(happened.mean())
    if _is_rare(happened):
        low, high = proportion_confint(
            happened.sum() / alike, len(happened) / alike, method="wilson"
        )
        return replace(base, name=RATE, value=value, low=float(low), high=float(high))
    try:
        term = gee(happened, pd.DataFrame(index=happened.index), people).terms["intercept"]
    except NotEstimable as problem:
        return replace(base, name=RATE, problem=str(problem))
    low, high = max(0.0, term.low), min(1.0, term.high)
    return replace(base, name=RATE, value=value, low=low, high=high)


def _difference(
    rows: pd.DataFrame, column: str, inside: pd.Series, alike: float, base: Estimate
) -> Estimate:
    found = replace(base, name=DIFFERENCE, n=len(rows), counsellors=rows["counsellor"].nunique())
    sides = rows.loc[inside, column], rows.loc[~inside, column]
    if any(_is_rare(side) for side in sides):
        return _rare_difference(found, *sides, alike)
    design = pd.DataFrame({"inside": np.asarray(inside, dtype=float)}, index=rows.index)
    try:
        fit = gee(rows[column], design, rows["counsellor"], clients=rows["client"])
        term = fit.terms["inside"]
    except (NotEstimable, KeyError):
        return replace(found, problem=NOT_ENOUGH)
    return replace(found, value=term.value, low=term.low, high=term.high, p=term.p)


def _rare_difference(found: Estimate, one: pd.Series, other: pd.Series, alike: float) -> Estimate:
    """Newcombe's interval and Fisher's test, of numbers as if rows were independent."""
    counts = [side.sum() / alike for side in (one, other)]
    sizes = [len(side) / alike for side in (one, other)]
    low, high = confint_proportions_2indep(
        counts[0], sizes[0], counts[1], sizes[1], method="newcomb", compare="diff"
    )
    table = [
        [round(count), max(0, round(size - count))]
        for count, size in zip(counts, sizes, strict=True)
    ]
    value = float(one.mean() - other.mean())
    p = float(fisher_exact(table).pvalue)
    return replace(found, value=value, low=float(low), high=float(high), p=p)
