"""Estimates with intervals that allow for turns of one counsellor being alike."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata
from scipy.stats import t as students_t

from stream_app.adaptation.fitting import Floats, Ints

RESAMPLES: Final = 1000
LEVEL: Final = 0.95


class Estimate(NamedTuple):
    """A value with its 95 % interval; the ends are NaN if there is none."""

    value: float
    low: float
    high: float

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval is."""
        return bool(self.low > 0.0)

    def missing(self, n: int) -> int | None:
        """About how many more than ``n`` observations would tell the value from 0.

        Half the interval shrinks with the root of their number. None if there is no interval, or
        if it would take more than 20 times as many.

        >>> Estimate(0.1, -0.1, 0.3).missing(100), Estimate(0.3, 0.1, 0.5).missing(100)
        (300, 0)
        """
        half = max(self.high - self.value, self.value - self.low)
        if np.isnan(half) or half >= abs(self.value) * 20**0.5:
            return None
        return max(0, round(n * (half / abs(self.value)) ** 2) - n)

    @property
    def words(self) -> str:
        """Words for tables.

        >>> Estimate(-0.1234, -0.2, -0.05).words
        '-0.123 [-0.200, -0.050]'
        """
        if np.isnan(self.low):
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


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


def kappa_difference(before: Floats, after: Floats, *, ordered: bool) -> Estimate:
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


def kappa_interval(tables: Floats, *, ordered: bool) -> Estimate:
    """Kappa of confusion matrices by group, with an interval that leaves out a group each time."""
    total = tables.sum(axis=0)
    left_out = kappa(total - tables, ordered=ordered)
    return _jackknifed(float(kappa(total, ordered=ordered)), left_out)


def rank_correlation(score: Floats, gold: Ints, group: Ints) -> Estimate:
    """Spearman's, with an interval that leaves out a group each time; NaN without variation."""
    ranks = [rankdata(values) for values in (score, gold)]
    x, y = (values - values.mean() for values in ranks)
    _, place = np.unique(group, return_inverse=True)
    parts = np.stack([x * x, y * y, x * y, x, y, np.ones(len(x))], axis=1)
    sums = np.zeros((int(place.max()) + 1, parts.shape[1]))
    np.add.at(sums, place, parts)
    total = sums.sum(axis=0)
    return _jackknifed(float(_correlation(total[None])[0]), _correlation(total - sums))


def _correlation(sums: Floats) -> Floats:
    xx, yy, xy, x, y, n = sums.T
    n = np.maximum(n, 1.0)
    spread = np.sqrt(np.maximum((xx - x * x / n) * (yy - y * y / n), 0.0))
    safe = np.where(spread > 0, spread, 1.0)
    return np.asarray(np.where(spread > 0, (xy - x * y / n) / safe, np.nan))


def _jackknifed(value: float, left_out: Floats) -> Estimate:
    """Student's interval from the values without each of the groups (Tukey 1958)."""
    groups = len(left_out)
    if groups < 2 or np.isnan(value) or np.isnan(left_out).any():
        return Estimate(value, float("nan"), float("nan"))
    error = float(np.sqrt((groups - 1) / groups * ((left_out - left_out.mean()) ** 2).sum()))
    half = float(students_t.ppf((1 + LEVEL) / 2, groups - 1)) * error
    return Estimate(value, value - half, value + half)
