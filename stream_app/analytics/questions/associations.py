"""Question 2: what goes with likes, replies, follows and ratings?

After Sharma et al. (2020), section 7 (2) and (3), who compared raw rates; here the three mechanisms
stand in one model, adjusted for topic, length and time of day. Outcomes of turns (events with a
``seq``) are counts by turn, outcomes of sessions one value a session.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import pandas as pd

from stream_app.analytics.questions import progress
from stream_app.analytics.questions.clustered import dummies, gee
from stream_app.analytics.questions.frames import Frames
from stream_app.analytics.questions.groups import begin, blank, estimated, size_of
from stream_app.analytics.questions.result import ALL, Analysis, Context, Estimate, Texts
from stream_app.contracts.events import OutcomeKind, Role
from stream_app.contracts.scores import MECHANISMS

QUESTION: Final = "associations"
TEXTS: Final = Texts(
    title="What goes with likes, replies, follows and ratings",
    about=(
        "A rate ratio of 1.4 for strong emotional reactions: turns with them got 1.4 times the "
        "likes of turns without, at equal levels of the other mechanisms, length, topic and time "
        "of day. Associations: clients who like more may also be answered differently."
    ),
    method=(
        "Turn outcomes: Poisson; follows of a session: logit; ratings: linear. Generalised "
        "estimating equations clustered by counsellor with Mancl-DeRouen covariance, and by client "
        "where one returns to another counsellor; adjusted for "
        "domain, channel, logarithm of the length, six-hour parts of the day and model."
    ),
    source="Sharma et al. 2020, section 7 (2) and (3)",
)
PER_TURN: Final = {"weak": 1.0, "strong": 2.0}
MOST_MISSING: Final = 0.2
"""Share of turns without a known length above which length is left out of the model."""


def analyse(frames: Frames, context: Context) -> Analysis:
    """Rate ratios of turns, odds ratios and differences of sessions, by mechanism."""
    found = begin(frames, context, QUESTION, TEXTS)
    notes: list[str] = []
    estimates = [*_of_turns(frames, notes), *_of_sessions(frames)]
    if not estimates:
        notes.append("There are no outcome events about these sessions.")
    return replace(found, estimates=estimates, notes=notes)


def turn_table(frames: Frames) -> pd.DataFrame:
    """Counsellor turns with all three levels, what they are adjusted for, and outcome counts."""
    said = frames.turns[frames.turns["role"] == Role.COUNSELLOR.value]
    said = said.dropna(subset=list(MECHANISMS))
    facts = frames.sessions[["session_id", "counsellor", "client", "domain", "channel"]]
    table = said.merge(facts, on="session_id")
    given = frames.outcomes[frames.outcomes["seq"].notna() & (frames.outcomes["value"] > 0)]
    counts = given.groupby(["session_id", "seq", "kind"]).size().unstack(fill_value=0)
    table["seq"] = table["seq"].astype(float)
    table = table.join(counts, on=["session_id", "seq"])
    names = list(counts.columns)
    table[names] = table[names].fillna(0.0)
    return table


def turn_design(table: pd.DataFrame, *, with_length: bool) -> pd.DataFrame:
    """Levels 1 and 2 of each mechanism compared with 0, and the adjustments."""
    levels = {
        f"{name}:{label}": (table[name] == level).astype(float)
        for name in MECHANISMS
        for label, level in PER_TURN.items()
    }
    columns = pd.DataFrame(levels, index=table.index).join(_adjustments(table, "occurred_at"))
    if with_length:
        columns["length"] = np.log(table["characters"].clip(lower=1))
    return columns


def _adjustments(table: pd.DataFrame, time: str) -> pd.DataFrame:
    parts = [dummies(table[name], name) for name in ("domain", "channel", "bundle")]
    parts.append(dummies(table[time].dt.hour // 6, "part of the day"))
    return pd.concat(parts, axis=1)


def _of_turns(frames: Frames, notes: list[str]) -> Iterator[Estimate]:
    table = turn_table(frames)
    kinds = [kind.value for kind in OutcomeKind if kind.value in table and kind.value != "rating"]
    if not kinds:
        return
    missing = float(table["characters"].isna().mean())
    known = missing <= MOST_MISSING
    if not known:
        notes.append(
            f"Not adjusted for length: unknown for {missing:.0%} of the turns, which an early "
            "release stored."
        )
    table = table.dropna(subset=["characters"]) if known else table
    design = turn_design(table, with_length=known)
    terms = {
        f"{name}:{label}": f"{label} {name.replace('_', ' ')} compared with none"
        for name in MECHANISMS
        for label in PER_TURN
    }
    for kind in progress.each("outcomes of turns", kinds):
        base = blank(table, kind, ALL, "rate ratio")
        who = table["counsellor"], "poisson"
        fit = partial(gee, table[kind], design, *who, clients=table["client"])
        for each in estimated(fit, terms, base, lambda value: float(np.exp(value))):
            yield each.checked(size_of(table))


def session_table(frames: Frames) -> pd.DataFrame:
    """Sessions with their outcomes: ``like``, ``reply``, ``follow`` as 0/1, ``rating`` 1-5."""
    whole = frames.outcomes[frames.outcomes["seq"].isna()]
    value = whole.groupby(["session_id", "kind"])["value"].mean().unstack()
    return frames.sessions.join(value, on="session_id")


def session_design(table: pd.DataFrame) -> pd.DataFrame:
    """Mean levels of the session and the adjustments."""
    columns = table[list(MECHANISMS)].join(_adjustments(table, "started_at"))
    columns["length"] = np.log(table["turns"].clip(lower=1))
    return columns


def _of_sessions(frames: Frames) -> Iterator[Estimate]:
    table = session_table(frames).dropna(subset=list(MECHANISMS))
    terms: Mapping[str, str] = {
        name: f"one level more of {name.replace('_', ' ')} in the session's mean"
        for name in MECHANISMS
    }
    for kind in (kind.value for kind in OutcomeKind if kind.value in table):
        if kind == OutcomeKind.RATING.value:
            some = table.dropna(subset=[kind])
            base = blank(some, "rating of the session", ALL, "points (1-5)")
            design = session_design(some)
            fit = partial(gee, some[kind], design, some["counsellor"], clients=some["client"])
            found = estimated(fit, terms, base)
        else:
            some = table
            base = blank(some, f"{kind} of the session", ALL, "odds ratio")
            happened = (some[kind].fillna(0.0) > 0).astype(float)
            who = some["counsellor"], "binomial"
            fit = partial(gee, happened, session_design(some), *who, clients=some["client"])
            found = estimated(fit, terms, base, lambda value: float(np.exp(value)))
        for each in found:
            yield each.checked(size_of(some))
