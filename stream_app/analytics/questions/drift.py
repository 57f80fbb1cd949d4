"""Question 6: have the data or the model's behaviour shifted?

Compares a current period with the half year before it under the same bundle: the population
stability index of every head's labels, of lengths and of languages; abstention; calibration against
ratings and outcomes; and what a change of the model did to the index.

A warning is about a change: of a size that matters, beyond chance, and in the current period. What
has always been so, or changed before the period compared, is shown and gives none; so a change is
called for as long as it is new, not for ever. From the date of a change that somebody has
acknowledged, its measure has a new baseline.

The index is corrected for the sample size (with few turns it is large by chance: Yurdakul & Naranjo
2020), and its test resamples counsellors, because their turns are alike.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from stream_app.analytics.questions import progress
from stream_app.analytics.questions.clustered import bands, gee
from stream_app.analytics.questions.expressed_perceived import corrected
from stream_app.analytics.questions.frames import RISK, Frames
from stream_app.analytics.questions.groups import begin, blank, estimated, size_of
from stream_app.analytics.questions.head_labels import ABSTAINED, HEAD
from stream_app.analytics.questions.over_time import decomposed
from stream_app.analytics.questions.result import (
    ALL,
    Analysis,
    Context,
    Curve,
    Estimate,
    Point,
    Texts,
)
from stream_app.contracts.events import OutcomeKind

QUESTION: Final = "drift"
DAYS: Final = 28
"""Length of the current period where no date is given."""
BASELINE: Final = 182
"""Days before the current period that it is compared with."""
AROUND: Final = 60
"""Days before and after a change of the model that are compared."""
SMALLEST: Final = 0.025
"""Stability index from which a change counts: half a logit gives it at a share of a tenth."""
SMALLEST_SHARE: Final = 0.03
"""Least change of an abstention or calibration, and of the index when the model changes."""
LOOK_BACK: Final = 8
"""Weeks before the current period in which a change may have begun."""
TINY: Final = 1e-9
DRAWS: Final = 2000
DECILES: Final = 10
DISSATISFIED: Final = 3.0
"""Ratings below it count as the bad outcome that outcome models predict."""
INDEX: Final = "population stability index"
ABSTENTION: Final = "change of the share of abstained turns"
CALIBRATION: Final = "observed minus predicted"
RECALIBRATION: Final = "change of observed minus predicted"
BREAK: Final = "change within counsellors at a change of the model"
TO: Final = " to "
SIGNIFICANT: Final = 0.05
TEXTS: Final = Texts(
    title="Drift and data health",
    about=(
        "Index below 0.025: stable; 0.025 to 0.25: look if beyond chance; above: investigate "
        "before reading trends. A warning is about something new: a change since the current "
        "period began. Drift says that something changed (clients, counsellors, transcription, "
        "the model), not that scores are wrong; calibration says whether they are."
    ),
    method=(
        "Population stability index of label shares (abstained is a label; lengths by the "
        "reference's deciles) less its expectation without drift; intervals and p-values from a "
        "bootstrap over counsellors. Differences by generalised estimating equations clustered "
        "by counsellor with Mancl-DeRouen covariance. Holm's correction over all tests."
    ),
    source="Yurdakul & Naranjo 2020 (sampling distribution of the index)",
)


class Subject(NamedTuple):
    """A figure that may change; ``group`` names the models where the model changes."""

    name: str
    measure: str
    group: str = ALL


@dataclass(frozen=True, slots=True)
class Change:
    """A change beyond chance, and the day since when."""

    subject: Subject
    since: pd.Timestamp
    estimate: Estimate

    @property
    def words(self) -> str:
        """One line for the people who run Rapport."""
        return words(self.subject, self.estimate.value or 0.0, self.since)


@dataclass(frozen=True, slots=True)
class Periods:
    """Which sessions are compared, by the ids of both periods.

    ``known``: changes that somebody has acknowledged, with the days from which they are the
    baseline.
    """

    at: pd.Timestamp
    reference: set[str]
    current: set[str]
    note: str
    known: Mapping[Subject, pd.Timestamp] = field(default_factory=dict)

    def comparable(self, rows: pd.DataFrame, subject: Subject) -> pd.Series:
        """Rows since the last known change of the subject."""
        return rows["started_at"] >= self.known.get(subject, self.at - pd.Timedelta(days=BASELINE))


class _Dated(NamedTuple):
    """An estimate, and since when it is so; None where it is within chance."""

    estimate: Estimate
    since: pd.Timestamp | None = None


@dataclass(frozen=True, slots=True)
class Shifts:
    """All estimates, and which of them are changes."""

    part: Frames
    periods: Periods
    estimates: list[Estimate]
    changes: list[Change]


def analyse(
    frames: Frames,
    context: Context,
    *,
    at: datetime | None = None,
    known: Mapping[Subject, datetime] | None = None,
    seed: int = 1,
) -> Analysis:
    """Shifts between what came before ``at`` and what came since; ``known``: see ``Periods``."""
    found = begin(frames, context, QUESTION, TEXTS)
    if frames.sessions.empty:
        return replace(found, notes=["There are no sessions."])
    shifts = shifts_of(frames, at, known or {}, seed)
    notes = [shifts.periods.note]
    notes += [
        f"{measure}, {group}: {name}: acknowledged, compared with sessions since {day:%Y-%m-%d}."
        for (name, measure, group), day in shifts.periods.known.items()
        if name != BREAK
    ]
    return replace(
        found,
        estimates=shifts.estimates,
        curves=[*_reliability(shifts.part), *_risk_reliability(shifts.part)],
        notes=notes,
        warnings=[each.words for each in shifts.changes],
    )


def shifts_of(
    frames: Frames, at: datetime | None, known: Mapping[Subject, datetime], seed: int = 1
) -> Shifts:
    """Return the shifts of a platform that has sessions."""
    periods = periods_of(frames.sessions, at)
    days = {subject: pd.Timestamp(day) for subject, day in known.items()}
    earliest = periods.at - pd.Timedelta(days=BASELINE)
    kept = {subject: day for subject, day in days.items() if day > earliest}
    periods = replace(periods, known=kept)
    chosen = frames.sessions["session_id"].isin(periods.reference | periods.current)
    part = frames.of_sessions(chosen)
    made = [
        *_indexes(part, periods, seed),
        *_abstentions(part, periods),
        *_calibration(part, periods),
        *_breaks(frames.sessions),
    ]
    estimates = corrected([each.estimate for each in made])
    changes = [
        Change(subject, dated.since, each)
        for each, dated in zip(estimates, made, strict=True)
        if dated.since is not None
        and is_warning(each)
        and not _is_past(each, dated.since, periods)
        and not ((subject := subject_of(each)).name == BREAK and subject in days)
    ]
    return Shifts(part, periods, estimates, changes)


def words(subject: Subject, value: float, since: datetime) -> str:
    """A change in one line."""
    return f"{subject.measure}, {subject.group}: {subject.name} {value:.2f} since {since:%Y-%m-%d}"


def subject_of(each: Estimate) -> Subject:
    """Return the measure and figure that an estimate belongs to."""
    return Subject(each.name, each.measure, each.group)


def began(rows: pd.DataFrame, values: pd.DataFrame, at: pd.Timestamp) -> pd.Timestamp:
    """The day that splits the values best: the means of the columns before and from then on.

    Days are a week apart, from the last session back to some weeks before the current period.
    """
    order = np.argsort(rows["started_at"].to_numpy(), kind="stable")
    moments = rows["started_at"].iloc[order].reset_index(drop=True)
    sums = np.cumsum(values.to_numpy(dtype=float)[order], axis=0)
    spread = values.to_numpy(dtype=float).var(axis=0)
    last = moments.iloc[-1].normalize() + pd.Timedelta(days=1)
    weeks = max(1, (last - at).days // 7) + LOOK_BACK
    days = [last - pd.Timedelta(weeks=back) for back in range(1, weeks + 1)]
    best, found = -1.0, at
    for day in days:
        before = int(moments.searchsorted(day))
        after = len(moments) - before
        if before == 0 or after == 0:
            continue
        gap = sums[before - 1] / before - (sums[-1] - sums[before - 1]) / after
        clear = float((gap**2 / np.maximum(spread, TINY)).sum()) * before * after / len(moments)
        if clear > best:
            best, found = clear, day
    return found


def _dated(
    each: Estimate, rows: pd.DataFrame, values: pd.Series | pd.DataFrame, at: pd.Timestamp
) -> _Dated:
    """With the day since when, where the change may be beyond chance."""
    if each.p is None or each.p >= SIGNIFICANT:
        return _Dated(each)
    return _Dated(each, began(rows, pd.DataFrame(values), at))


def periods_of(sessions: pd.DataFrame, at: datetime | None) -> Periods:
    """The current period begins ``at``, or is the last four weeks; under one bundle if possible."""
    last = sessions["started_at"].max()
    start = pd.Timestamp(at) if at is not None else last - pd.Timedelta(days=DAYS)
    now = sessions[sessions["started_at"] >= start]
    bundle = str(now["bundle"].mode().iloc[0]) if len(now) else str(sessions["bundle"].iloc[-1])
    baseline = start - pd.Timedelta(days=BASELINE)
    same = sessions[sessions["bundle"] == bundle]
    before = same[(same["started_at"] < start) & (same["started_at"] >= baseline)]
    current = set(same.loc[same["started_at"] >= start, "session_id"])
    day = f"{start:%Y-%m-%d}"
    if len(before):
        note = f"Sessions since {day} compared with those of the half year before under {bundle}."
        return Periods(start, set(before["session_id"]), current, note)
    earlier = sessions[(sessions["started_at"] < start) & (sessions["started_at"] >= baseline)]
    note = (
        f"Sessions since {day} under {bundle} compared with those of the half year before under "
        "other models: "
        "shifts include the change of the model."
    )
    return Periods(start, set(earlier["session_id"]), current, note)


def is_warning(each: Estimate) -> bool:
    """A change beyond chance and of a size that matters."""
    if each.value is None or each.p_adjusted is None or each.p_adjusted >= SIGNIFICANT:
        return False
    return abs(each.value) >= (SMALLEST if each.name == INDEX else SMALLEST_SHARE)


def _is_past(each: Estimate, since: pd.Timestamp, periods: Periods) -> bool:
    """Whether it is about a change of the model before the current period."""
    return each.name == BREAK and bool(since < periods.at)


def _indexes(part: Frames, periods: Periods, seed: int) -> Iterator[_Dated]:
    facts = part.sessions[["session_id", "counsellor", "client", "started_at"]]
    turns = part.turns.merge(facts, on="session_id")
    turns["current"] = turns["session_id"].isin(periods.current)
    heads = sorted(name for name in turns.columns if name.startswith(HEAD))
    for column in progress.each("heads", heads):
        head = column.removeprefix(HEAD).replace("_", " ")
        yield from _index(turns, turns[column], head, periods, seed)
    for role, said in turns.groupby("role"):
        lengths = said["characters"]
        if lengths.notna().any():
            yield from _index(said, by_decile(said, lengths), f"length, {role}", periods, seed)
    sessions = part.sessions.assign(current=part.sessions["session_id"].isin(periods.current))
    yield from _index(sessions, sessions["lang"], "language", periods, seed)


def _too_few(*sides: pd.DataFrame) -> bool:
    return any(side.empty or size_of(side).too_small for side in sides)


def by_decile(said: pd.DataFrame, values: pd.Series) -> pd.Series:
    """Values by the reference's deciles."""
    reference = values[~said["current"]].dropna()
    if reference.empty:
        return pd.Series(np.nan, index=values.index)
    edges = np.unique(np.quantile(reference, np.linspace(0, 1, DECILES + 1)[1:-1]))
    places = np.searchsorted(edges, values, side="right")
    return pd.Series(places, index=values.index).where(values.notna())


def _index(
    rows: pd.DataFrame, labels: pd.Series, measure: str, periods: Periods, seed: int
) -> Iterator[_Dated]:
    known = labels.notna() & periods.comparable(rows, Subject(INDEX, measure))
    some = rows[known]
    base = replace(blank(some, measure, ALL, "index"), name=INDEX)
    sides = [some[some["current"]], some[~some["current"]]]
    if _too_few(*sides) or labels[known].nunique() < 2:
        few = "not enough data in one of the periods, or a single label"
        yield _Dated(replace(base, problem=few, n=None, counsellors=None))
        return
    value, low, high, p = stability(
        labels[known], some["current"].to_numpy(), some["counsellor"], seed
    )
    found = replace(base, value=value, low=low, high=high, p=p)
    yield _dated(found, some, pd.get_dummies(labels[known]), periods.at)


def stability(
    labels: pd.Series, current: Any, counsellors: pd.Series, seed: int
) -> tuple[float, float, float, float]:
    """The corrected index with its interval, and the p-value of no drift.

    Bootstrap over counsellors, whose turns stay together in both periods.
    """
    places, names = pd.factorize(labels)
    rows, _ = pd.factorize(counsellors)
    count = int(rows.max()) + 1
    counts = np.zeros((count, 2, len(names)))
    np.add.at(counts, (rows, np.asarray(current, dtype=int), places), 1)
    weights = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=DRAWS)
    drawn = np.tensordot(weights, counts, axes=1)
    total = counts.sum(axis=0)
    change, middle = _change(total)
    by_chance = (_change(drawn)[0] - change) * np.sqrt(count / (count - 1))
    null = (by_chance**2 / middle).sum(axis=-1)
    expected = float(null.mean())
    value = max(0.0, float(_psi(total)) - expected)
    low, high = np.percentile(np.maximum(_psi(drawn) - 2 * expected, 0), [2.5, 97.5])
    observed = float((change**2 / middle).sum())
    p = (1 + int((null >= observed).sum())) / (DRAWS + 1)
    return value, float(low), float(high), p


def _shares(counts: Any) -> Any:
    smoothed = counts + 0.5
    return smoothed / smoothed.sum(axis=-1, keepdims=True)


def _change(counts: Any) -> tuple[Any, Any]:
    shares = _shares(counts)
    return shares[..., 1, :] - shares[..., 0, :], shares.mean(axis=-2)


def _psi(counts: Any) -> Any:
    shares = _shares(counts)
    now, before = shares[..., 1, :], shares[..., 0, :]
    return ((now - before) * np.log(now / before)).sum(axis=-1)


def _abstentions(part: Frames, periods: Periods) -> Iterator[_Dated]:
    facts = part.sessions[["session_id", "counsellor", "client", "started_at"]]
    turns = part.turns.merge(facts, on="session_id")
    for column in sorted(name for name in turns.columns if name.startswith(HEAD)):
        head = column.removeprefix(HEAD).replace("_", " ")
        new = periods.comparable(turns, Subject(ABSTENTION, head))
        some = turns[turns[column].notna() & new]
        gone = (some[column] == ABSTAINED).astype(float)
        if gone.sum() == 0:
            continue
        design = pd.DataFrame({"current": some["session_id"].isin(periods.current)}, dtype=float)
        base = blank(some, head, ALL, "share of turns")
        fit = partial(gee, gone, design, some["counsellor"], clients=some["client"])
        for each in estimated(fit, {"current": ABSTENTION}, base):
            yield _dated(each.checked(size_of(some)), some, gone, periods.at)


def rated_table(frames: Frames) -> pd.DataFrame:
    """Ratings with the model's prediction: whether it was right, less its probability."""
    facts = frames.sessions[["session_id", "counsellor", "client", "bundle", "started_at"]]
    table = frames.ratings.dropna(subset=["model", "probability"]).merge(facts, on="session_id")
    table["right"] = (table["model"] == table["value"]).astype(float)
    return table


def risk_table(frames: Frames, risk: str) -> pd.DataFrame:
    """Rated sessions with a predicted outcome: whether the rating was bad."""
    whole = frames.outcomes[
        (frames.outcomes["kind"] == OutcomeKind.RATING.value) & frames.outcomes["seq"].isna()
    ]
    stars = whole.groupby("session_id")["value"].mean().rename("stars")
    table = frames.sessions.join(stars, on="session_id").dropna(subset=["stars", risk])
    table["bad"] = (table["stars"] < DISSATISFIED).astype(float)
    return table


def _risks(frames: Frames) -> list[str]:
    return sorted(name for name in frames.sessions.columns if name.startswith(RISK))


def _calibration(frames: Frames, periods: Periods) -> Iterator[_Dated]:
    """Mean of observed minus predicted, 0 for a calibrated model; and its change."""
    for head, some in rated_table(frames).groupby("head"):
        measure = f"probability of {str(head).replace('_', ' ')}, against ratings"
        yield from _in_the_large(some, some["right"] - some["probability"], measure, periods)
    for risk in _risks(frames):
        some = risk_table(frames, risk)
        measure = f"risk {risk.removeprefix(RISK)}, against ratings below {DISSATISFIED:.0f}"
        yield from _in_the_large(some, some["bad"] - some[risk], measure, periods)


def _in_the_large(
    some: pd.DataFrame, gap: pd.Series, measure: str, periods: Periods
) -> Iterator[_Dated]:
    if some.empty:
        return
    base = blank(some, measure, ALL, "share")
    nothing = pd.DataFrame(index=some.index)
    fit = partial(gee, gap, nothing, some["counsellor"], clients=some["client"])
    for each in estimated(fit, {"intercept": CALIBRATION}, base):
        yield _Dated(replace(each, p=None).checked(size_of(some)))
    new = periods.comparable(some, Subject(RECALIBRATION, measure))
    some, gap = some[new], gap[new]
    now = some["session_id"].isin(periods.current)
    if _too_few(some[now], some[~now]):
        few = "not enough data in one of the periods"
        yield _Dated(replace(base, name=RECALIBRATION, problem=few, n=None, counsellors=None))
        return
    base = blank(some, measure, ALL, "share")
    design = now.astype(float).to_frame("now")
    change = partial(gee, gap, design, some["counsellor"], clients=some["client"])
    for each in estimated(change, {"now": RECALIBRATION}, base):
        yield _dated(each, some, gap, periods.at)


def _breaks(sessions: pd.DataFrame) -> Iterator[_Dated]:
    """The index before and after each change of the model, within counsellors."""
    first = sessions.groupby("bundle")["started_at"].min().sort_values()
    names = list(first.index)
    for older, newer in pairwise(names):
        near = (sessions["started_at"] - first[newer]).abs() <= pd.Timedelta(days=AROUND)
        some = sessions[near & sessions["bundle"].isin([older, newer])]
        some = some.dropna(subset=["empathy_index"])
        if some.empty:
            continue
        design = pd.DataFrame({"newer": (some["bundle"] == newer).astype(float)})
        split = decomposed(design, some["counsellor"])
        base = blank(some, "empathy_index", f"{older}{TO}{newer}", "index (0-1)")
        fit = partial(gee, some["empathy_index"], split, some["counsellor"])
        for each in estimated(fit, {"newer:within": BREAK}, base):
            yield _Dated(each.checked(size_of(some)), first[newer])


def _reliability(frames: Frames) -> Iterator[Curve]:
    for (head, bundle), some in rated_table(frames).groupby(["head", "bundle"]):
        title = f"Reliability of {str(head).replace('_', ' ')}: share right by probability"
        yield _binned(some, "probability", "right", title, str(head), str(bundle))


def _risk_reliability(frames: Frames) -> Iterator[Curve]:
    for risk in _risks(frames):
        for bundle, some in risk_table(frames, risk).groupby("bundle"):
            title = f"Reliability of the risk {risk.removeprefix(RISK)}"
            yield _binned(some, risk, "bad", title, risk, str(bundle))


def _binned(
    some: pd.DataFrame, predicted: str, observed: str, title: str, measure: str, bundle: str
) -> Curve:
    """Observed shares by tenths of the prediction; small bins are hidden."""
    table = some.assign(bin=np.minimum(np.floor(some[predicted] * DECILES), DECILES - 1))
    means = bands(table, observed, "bin", "counsellor")
    points = []
    for place, row in means.iterrows():
        label = f"{place / DECILES:.1f}-{(place + 1) / DECILES:.1f}"
        x = (float(place) + 0.5) / DECILES
        if size_of(table[table["bin"] == place]).too_small:
            points.append(Point(x, label, None, None, None, None))
            continue
        value, low, high = (float(row[key]) for key in ("value", "low", "high"))
        points.append(Point(x, label, value, low, high, int(row["n"])))
    return Curve(title, measure, ALL, bundle, "predicted", "observed share", points)
