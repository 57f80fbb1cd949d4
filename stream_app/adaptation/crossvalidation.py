"""Nested cross-validation of a head's recalibration, by counsellor, and the gate.

The outer folds measure: counsellors of a fold have no part in what is chosen and fitted for it. The
inner folds choose family, prior and the weight of disputes. The bundle as it is, is chosen unless
the best candidate is better by more than one standard error (Breiman et al. 1984, section 3.4.3).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import t as students_t

from stream_app.adaptation import thresholds
from stream_app.adaptation.fitting import (
    Candidate,
    Fit,
    Floats,
    HeadData,
    Ints,
    fit,
    log_loss,
    path,
    unchanged,
)
from stream_app.inference.scorer import choose_labels

FOLDS: Final = 5
MIN_COUNSELLORS: Final = 5
MIN_RATINGS: Final = 8
DISPUTE_WEIGHTS: Final = (0.0, 0.5, 1.0)
RESAMPLES: Final = 1000
LEVEL: Final = 0.95
KAPPA_MARGIN: Final = 0.02
"""A drop of kappa within this margin is no loss for the gate."""


class Estimate(NamedTuple):
    """A value with its 95 % interval; the ends are NaN if there is none."""

    value: float
    low: float
    high: float

    @property
    def words(self) -> str:
        """As in tables.

        >>> Estimate(-0.1234, -0.2, -0.05).words
        '-0.123 [-0.200, -0.050]'
        """
        if np.isnan(self.low):
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Choice(NamedTuple):
    """What the inner folds chose; ``candidate`` None: the bundle as it is."""

    candidate: Candidate | None
    dispute_weight: float = 0.0

    @property
    def words(self) -> str:
        """As in cards."""
        if self.candidate is None:
            return "as shipped"
        disputes = f", disputes at {self.dispute_weight:g}" if self.dispute_weight else ""
        return self.candidate.words + disputes


class Fitted(NamedTuple):
    """A choice, fitted; ``offsets`` as in ``HeadSpec``."""

    choice: Choice
    fit: Fit
    offsets: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Validation:
    """Out-of-fold figures of one head, on ratings alone.

    ``log_loss`` and ``kappa``: (parent, adapted). Differences are adapted - parent. ``kappa`` has
    quadratic weights for levels and none for other heads. ``predicted``: [n, labels] out of fold.
    """

    ratings: int
    blind: int
    counsellors: int
    log_loss: tuple[float, float]
    log_loss_difference: Estimate
    kappa: tuple[float, float]
    kappa_difference: Estimate
    choices: tuple[str, ...]
    predicted: Floats
    labels: Ints

    @property
    def passes(self) -> bool:
        """The gate: less log loss for certain, and no certain loss of agreement.

        The whole interval of the log-loss difference is below 0, and kappa is not lower by more
        than ``KAPPA_MARGIN`` at best.
        """
        gain = self.log_loss_difference
        kept = self.kappa_difference
        worse = kept.value < -KAPPA_MARGIN or kept.high < 0.0
        return not np.isnan(gain.high) and gain.high < 0.0 and not worse


def validate(data: HeadData) -> Validation:
    """Cross-validate the whole procedure; ``data`` must have enough ratings and counsellors."""
    rated = data.rows(~data.disputed)
    predicted = np.array(rated.own)
    chosen = choose_labels(rated.own, list(data.offsets))
    choices: list[str] = []
    for held_out in folds(data.group, rated_groups=rated.group):
        inside = np.isin(rated.group, held_out)
        if not inside.any():
            continue
        learnt = learn(data.rows(~np.isin(data.group, held_out)))
        choices.append(learnt.choice.words)
        some = rated.rows(inside)
        predicted[inside] = learnt.fit.predict(some)
        chosen[inside] = choose_labels(predicted[inside], list(learnt.offsets))
    before, after = log_loss(rated.own, rated.target), log_loss(predicted, rated.target)
    gold = rated.target.argmax(axis=-1)
    own = choose_labels(rated.own, list(data.offsets))
    tables = [confusions(gold, given, rated.group, len(data.labels)) for given in (own, chosen)]
    kappas = [float(kappa(table.sum(axis=0), ordered=data.ordered)) for table in tables]
    return Validation(
        ratings=len(rated),
        blind=int(rated.blind.sum()),
        counsellors=len(np.unique(rated.group)),
        log_loss=(float(before.mean()), float(after.mean())),
        log_loss_difference=clustered_mean(after - before, rated.group),
        kappa=(kappas[0], kappas[1]),
        kappa_difference=_kappa_difference(tables[0], tables[1], ordered=data.ordered),
        choices=tuple(choices),
        predicted=predicted,
        labels=chosen,
    )


def learn(data: HeadData) -> Fitted:
    """Choose with the inner folds, and fit on all rows."""
    choice = choose(data)
    if choice.candidate is None:
        return Fitted(choice, unchanged(data), data.offsets)
    found = fit(data.weighted(choice.dispute_weight), choice.candidate)
    rated = data.rows(~data.disputed)
    offsets = thresholds.fit_offsets(
        found.predict(rated), rated.target.argmax(axis=-1), data.offsets, ordered=data.ordered
    )
    return Fitted(choice, found, offsets)


def choose(data: HeadData) -> Choice:
    """The candidate with the lowest log loss over the inner folds, or the bundle as it is."""
    rated = data.rows(~data.disputed)
    if len(rated) < MIN_RATINGS or len(np.unique(rated.group)) < 2:
        return Choice(None)
    before = log_loss(rated.own, rated.target)
    losses = {candidate: np.array(before) for candidate in data.candidates}
    parts = list(folds(rated.group))
    for held_out in parts:
        inside = np.isin(rated.group, held_out)
        some, rest = rated.rows(inside), rated.rows(~inside)
        for family in data.families:
            of_family = [candidate for candidate in data.candidates if candidate.family is family]
            for candidate, found in zip(of_family, path(rest, family), strict=True):
                losses[candidate][inside] = log_loss(found.predict(some), some.target)
    best = min(losses, key=lambda candidate: float(losses[candidate].mean()))
    gain = losses[best] - before
    if float(gain.mean()) + standard_error(gain, rated.group) >= 0.0:
        return Choice(None)
    if not data.disputed.any():
        return Choice(best)
    return Choice(best, _dispute_weight(data, rated, best, parts))


def _dispute_weight(data: HeadData, rated: HeadData, best: Candidate, parts: list[Ints]) -> float:
    """The weight of disputes that helps to predict ratings most; the smallest of equal ones.

    Only contested scores become disputes, so that they are no sample of the turns.
    """
    found = []
    for weight in DISPUTE_WEIGHTS:
        total = 0.0
        for held_out in parts:
            some = rated.rows(np.isin(rated.group, held_out))
            rest = data.rows(~np.isin(data.group, held_out)).weighted(weight)
            total += float(log_loss(fit(rest, best).predict(some), some.target).sum())
        found.append(total)
    return DISPUTE_WEIGHTS[int(np.argmin(found))]


def folds(group: Ints, rated_groups: Ints | None = None) -> Iterator[Ints]:
    """Counsellors of each fold: the largest first, always into the smallest fold so far.

    ``rated_groups``: rows that balance the folds; counsellors without any follow at the end.
    """
    counted = group if rated_groups is None else rated_groups
    names = np.unique(group)
    sizes = {int(name): int((counted == name).sum()) for name in names}
    number = min(FOLDS, len(names))
    parts: list[list[int]] = [[] for _ in range(number)]
    filled = [0] * number
    for name in sorted(sizes, key=lambda one: (-sizes[one], one)):
        place = filled.index(min(filled))
        parts[place].append(name)
        filled[place] += max(1, sizes[name])
    yield from (np.array(part, dtype=np.int64) for part in parts)


def clustered_mean(values: Floats, group: Ints) -> Estimate:
    """Mean of the rows with a 95 % interval that allows for correlation within a group.

    Cluster-robust standard error with Student's t of groups - 1 degrees of freedom (Cameron and
    Miller 2015, sections II and VI).
    """
    mean, groups = float(values.mean()), len(np.unique(group))
    if groups < 2:
        return Estimate(mean, float("nan"), float("nan"))
    half = float(students_t.ppf((1 + LEVEL) / 2, groups - 1)) * standard_error(values, group)
    return Estimate(mean, mean - half, mean + half)


def standard_error(values: Floats, group: Ints) -> float:
    """Cluster-robust standard error of the mean of the rows; 0 with a single group."""
    names, place = np.unique(group, return_inverse=True)
    if len(names) < 2:
        return 0.0
    sums = np.bincount(place, weights=values - values.mean())
    correction = len(names) / (len(names) - 1)
    return float(np.sqrt(correction * (sums @ sums))) / len(values)


def confusions(gold: Ints, given: Ints, group: Ints, labels: int) -> Floats:
    """Confusion matrices by group, [groups, labels, labels]; rows are the raters' labels."""
    _, place = np.unique(group, return_inverse=True)
    found = np.zeros((int(place.max()) + 1 if len(place) else 0, labels, labels))
    np.add.at(found, (place, gold, given), 1.0)
    return found


def kappa(table: Floats, *, ordered: bool) -> npt.NDArray[np.float64]:
    """Cohen's kappa of matrices [..., labels, labels]; quadratic weights if ``ordered``.

    0 where both sides use one label alone.

    >>> float(kappa(np.array([[5.0, 0.0], [0.0, 5.0]]), ordered=True))
    1.0
    """
    labels = table.shape[-1]
    steps = np.arange(labels)
    far = np.subtract.outer(steps, steps).astype(float)
    cost = far**2 if ordered else (far != 0).astype(float)
    n = np.maximum(table.sum(axis=(-2, -1)), 1.0)
    chance = table.sum(axis=-1)[..., :, None] * table.sum(axis=-2)[..., None, :]
    expected = (cost * chance).sum(axis=(-2, -1)) / n
    seen = (cost * table).sum(axis=(-2, -1))
    safe = np.where(expected > 0, expected, 1.0)
    return np.asarray(np.where(expected > 0, 1.0 - seen / safe, 0.0))


def _kappa_difference(before: Floats, after: Floats, *, ordered: bool) -> Estimate:
    """Difference of kappa with its percentile interval, resampling counsellors."""
    value = float(kappa(after.sum(axis=0), ordered=ordered)) - float(
        kappa(before.sum(axis=0), ordered=ordered)
    )
    groups = len(before)
    if groups < 2:
        return Estimate(value, float("nan"), float("nan"))
    draws = np.random.default_rng(0).multinomial(groups, [1 / groups] * groups, RESAMPLES)
    sums = [np.tensordot(draws, table, axes=1) for table in (before, after)]
    found = kappa(sums[1], ordered=ordered) - kappa(sums[0], ordered=ordered)
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(found, [tail, 100 - tail])
    return Estimate(value, float(low), float(high))
