"""Question 4: how do expressed intents go with perceived empathy?

After Xu & Jiang, Table 2: for every intent, the mean perceived score with its standard error of the
turns in which it occurs and of those in which it does not, and a test of the difference. Here the
test is clustered by counsellor and corrected for the number of comparisons (Holm), and each
intent's share is correlated with the session's rating.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd
from scipy import stats

from stream_app.analytics.questions import progress
from stream_app.analytics.questions.clustered import NotEstimable, gee, holm
from stream_app.analytics.questions.frames import Frames
from stream_app.analytics.questions.groups import begin, blank, size_of
from stream_app.analytics.questions.head_labels import ABSTAINED, HEAD, INTENT, PERCEIVED
from stream_app.analytics.questions.result import ALL, Analysis, Context, Estimate, Texts
from stream_app.contracts.events import OutcomeKind, Role
from stream_app.contracts.scores import MECHANISMS

QUESTION: Final = "expressed-perceived"
DRAWS: Final = 500
RATED: Final = "rated "
OUTCOME: Final = "correlation of its share with the session's rating"
TEXTS: Final = Texts(
    title="Expressed intents and perceived empathy",
    about=(
        "The mean perceived score with and without each intent, and the difference. Predicted "
        "perceived scores come from the same model as the intents and the same words, so part of "
        "a difference is the model's own; rows of rated scores come from people."
    ),
    method=(
        "Unit: counsellor turn. Difference: generalised estimating equations clustered by "
        "counsellor, Mancl-DeRouen covariance, and by client where one returns to another "
        "counsellor; adjusted for nothing; p-values with Holm's "
        "correction over all comparisons. Standard errors are half the width of the 95 % interval "
        "divided by 1.96. Correlation: Spearman, bootstrap over counsellors."
    ),
    source="Xu & Jiang, Table 2",
)


def analyse(frames: Frames, context: Context, *, seed: int = 1) -> Analysis:
    """Means with and without every intent, differences, and correlations with ratings."""
    found = begin(frames, context, QUESTION, TEXTS)
    table = turn_table(frames)
    intents = intents_of(table)
    scores = [name for name in table.columns if name.startswith((PERCEIVED, RATED))]
    made: list[Estimate] = []
    for intent, occurs in progress.each("intents", intents.items()):
        for score in scores:
            made += _compared(table, intent, occurs, score)
    made += _outcomes(frames, table, intents, seed)
    notes = [] if made else ["No turn has both an intent and a perceived score."]
    return replace(found, estimates=corrected(made), notes=notes)


def corrected(estimates: list[Estimate]) -> list[Estimate]:
    """Apply Holm's correction over all that have a p-value."""
    tested = [place for place, each in enumerate(estimates) if each.p is not None]
    adjusted = dict(zip(tested, holm([estimates[p].p or 0.0 for p in tested]), strict=True))
    return [replace(each, p_adjusted=adjusted.get(place)) for place, each in enumerate(estimates)]


def turn_table(frames: Frames) -> pd.DataFrame:
    """Counsellor turns with who said them; ratings of perceived heads as ``rated NAME``."""
    said = frames.turns[frames.turns["role"] == Role.COUNSELLOR.value]
    facts = frames.sessions[["session_id", "counsellor", "client"]]
    table = said.merge(facts, on="session_id").reset_index(drop=True)
    names = {name.removeprefix(PERCEIVED) for name in table.columns if name.startswith(PERCEIVED)}
    judged = frames.ratings[frames.ratings["head"].isin(names)]
    if judged.empty:
        return table
    by_people = judged.groupby(["session_id", "seq", "head"])["value"].mean().unstack()
    return table.join(by_people.add_prefix(RATED), on=["session_id", "seq"])


def intents_of(table: pd.DataFrame) -> dict[str, pd.Series]:
    """Whether each turn has a label, by "head: label"; empty where the head abstained.

    Levels of a mechanism count as one intent from level 1 on. Live intents of the operator's file
    count from the first turn that has them.
    """
    found = {}
    for column in sorted(name for name in table.columns if name.startswith(INTENT)):
        name = column.removeprefix(INTENT).replace("_", " ")
        found[f"live intent: {name}"] = table[column]
    for column in sorted(name for name in table.columns if name.startswith(HEAD)):
        head = column.removeprefix(HEAD)
        labels = table[column].where(table[column] != ABSTAINED)
        if labels.notna().sum() == 0:
            continue
        if head in MECHANISMS:
            found[head.replace("_", " ")] = (labels != "0").astype(float).where(labels.notna())
            continue
        for label in sorted(set(labels.dropna())):
            name = f"{head}: {label}".replace("_", " ")
            found[name] = (labels == label).astype(float).where(labels.notna())
    return found


def _compared(
    table: pd.DataFrame, intent: str, occurs: pd.Series, score: str
) -> Iterator[Estimate]:
    known = occurs.notna() & table[score].notna()
    some = table[known]
    if some.empty or occurs[known].nunique() < 2:
        return
    shown = score.replace(PERCEIVED, "predicted ")
    for label, value in (("with", 1.0), ("without", 0.0)):
        part = some[occurs[known] == value]
        base = blank(part, shown, intent, "score (0-1)")
        for each in _terms(part, score, None, f"mean {label} it", base):
            yield replace(each, p=None).checked(size_of(part))
    base = blank(some, shown, intent, "score (0-1)")
    design = pd.DataFrame({"occurs": occurs[known]})
    for each in _terms(some, score, design, "difference", base):
        yield each.checked(size_of(some))


def _terms(
    rows: pd.DataFrame, score: str, design: pd.DataFrame | None, name: str, base: Estimate
) -> list[Estimate]:
    term = "intercept" if design is None else "occurs"
    columns = pd.DataFrame(index=rows.index) if design is None else design
    try:
        fit = gee(rows[score], columns, rows["counsellor"], clients=rows["client"])
        found = fit.terms[term]
    except (NotEstimable, KeyError) as problem:
        words = str(problem) if isinstance(problem, NotEstimable) else "not enough data"
        return [replace(base, name=name, problem=words)]
    known = {part: getattr(found, part) for part in ("value", "low", "high", "p", "error")}
    return [replace(base, name=name, **known)]


def _outcomes(
    frames: Frames, table: pd.DataFrame, intents: dict[str, pd.Series], seed: int
) -> Iterator[Estimate]:
    """Rank correlation of an intent's share of a session's turns with the session's rating."""
    whole = frames.outcomes[
        (frames.outcomes["kind"] == OutcomeKind.RATING.value) & frames.outcomes["seq"].isna()
    ]
    stars = whole.groupby("session_id")["value"].mean()
    for intent, occurs in intents.items():
        share = occurs.groupby(table["session_id"]).mean().rename("share")
        some = frames.sessions.join(share, on="session_id").join(
            stars.rename("stars"), on="session_id"
        )
        some = some.dropna(subset=["share", "stars"])
        if some["share"].nunique() < 2 or some["counsellor"].nunique() < 5:
            continue
        base = blank(some, intent, ALL, "rank correlation")
        value, low, high = spearman(some, seed)
        found = replace(base, name=OUTCOME, value=value, low=low, high=high)
        yield found.checked(size_of(some))


def spearman(some: pd.DataFrame, seed: int) -> tuple[float, float, float]:
    """Correlate ``share`` and ``stars``; percentile interval, bootstrap over counsellors."""
    ranks = np.column_stack([stats.rankdata(some["share"]), stats.rankdata(some["stars"])])
    rows, _ = pd.factorize(some["counsellor"])
    count = int(rows.max()) + 1
    x, y = (ranks - ranks.mean(axis=0)).T
    parts = np.column_stack([x * y, x * x, y * y, x, y, np.ones(len(x))])
    sums = np.zeros((count, parts.shape[1]))
    np.add.at(sums, rows, parts)
    draw = np.random.default_rng(seed)
    weights = draw.multinomial(count, np.full(count, 1 / count), size=DRAWS)
    drawn = _correlation(weights @ sums)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(_correlation(sums.sum(axis=0, keepdims=True))[0]), float(low), float(high)


def _correlation(sums: np.ndarray) -> np.ndarray:
    xy, xx, yy, x, y, n = sums.T
    spread = np.sqrt((xx - x * x / n) * (yy - y * y / n))
    return np.asarray((xy - x * y / n) / spread)
