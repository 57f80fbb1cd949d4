"""Question 7: are errors and alerts equally frequent in all subgroups?

By channel, language tag (a proxy of dialect) and, where a file of self-declared attributes is
configured, the client's attribute. Rates have intervals, differences from all others are tested,
and a subgroup about too few people gets "not enough data" and no figure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd

from stream_app.analytics.clustered import NotEstimable, gee
from stream_app.analytics.expressed_perceived import corrected
from stream_app.analytics.frames import Frames
from stream_app.analytics.groups import begin, blank, size_of
from stream_app.analytics.head_labels import ABSTAINED, HEAD
from stream_app.analytics.result import Analysis, Context, Estimate, Texts, hidden_groups
from stream_app.analytics.service_levels import PRECISION, alert_table
from stream_app.contracts.events import Role

QUESTION: Final = "fairness"
NOT_ENOUGH: Final = "not enough data"
FEWEST_ROWS: Final = 30
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
        "covariance, Student's t; intervals cut at 0 and 1); Holm's correction over all "
        "differences. Figures need 30 rows, 11 clients and 5 counsellors."
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
        each for rate in rates for grouping in groupings for each in _by_group(rate, grouping)
    ]
    notes = ["The language tag stands for dialect only as far as platforms set it."]
    if not attributes:
        notes.append("No file of self-declared attributes is configured.")
    return replace(found, estimates=corrected(estimates), notes=notes)


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
    gone = hidden_groups({name: size_of(part) for name, part in parts.items()}, size_of(rows))
    for name, part in parts.items():
        group = f"{grouping} {name}"
        if name in gone or len(part) < FEWEST_ROWS:
            yield replace(
                blank(part, rate.name, group, "share"),
                name=RATE,
                problem=NOT_ENOUGH,
                n=None,
                counsellors=None,
            )
            continue
        base = blank(part, rate.name, group, "share")
        yield _mean(part, rate.column, base)
        if not gone and (len(parts) > 2 or name == min(parts)):
            yield _difference(rows, rate.column, (rows[grouping].astype(str) == name), base)


def _mean(part: pd.DataFrame, column: str, base: Estimate) -> Estimate:
    try:
        term = gee(part[column], pd.DataFrame(index=part.index), part["counsellor"]).terms[
            "intercept"
        ]
    except NotEstimable as problem:
        return replace(base, name=RATE, problem=str(problem))
    low, high = max(0.0, term.low), min(1.0, term.high)
    return replace(base, name=RATE, value=term.value, low=low, high=high)


def _difference(rows: pd.DataFrame, column: str, inside: pd.Series, base: Estimate) -> Estimate:
    design = pd.DataFrame({"inside": np.asarray(inside, dtype=float)}, index=rows.index)
    found = replace(base, name=DIFFERENCE, n=len(rows), counsellors=rows["counsellor"].nunique())
    try:
        term = gee(rows[column], design, rows["counsellor"]).terms["inside"]
    except (NotEstimable, KeyError):
        return replace(found, problem=NOT_ENOUGH)
    return replace(found, value=term.value, low=term.low, high=term.high, p=term.p)
