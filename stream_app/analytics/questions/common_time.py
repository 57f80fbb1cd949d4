"""Regression within counsellors where whole weeks may differ for everybody.

Counsellors share what happens in a week: a holiday, a new form, a flu. Errors clustered by
counsellor take such a shock for evidence from many people. Here every week has an effect of its own
that all counsellors share; the effects follow each other as an autoregression of first order, and
are integrated out. What remains is clustered by counsellor, so errors are robust in both
directions.

The two parameters of the week effects (their size and how long they last) are not known. The
estimate is averaged over a grid of them, each weighted with its restricted likelihood, so that the
interval contains the uncertainty about them (few weeks say little about how long a shock lasts).

Nothing is dropped: a term that other terms of the design nearly make up has no estimate, and the
error names them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import linalg, sparse

from stream_app.analytics.questions.clustered import (
    FEWEST_CLUSTERS,
    Fit,
    NotEstimable,
    Term,
    dummies,
    summed_by_cluster,
    terms,
)

SEASON: Final = "the season of the year"
DAYS_A_WEEK: Final = 7
WEEKS_A_YEAR: Final = 365.25 / DAYS_A_WEEK
TWO_YEARS: Final = 104
"""Weeks from which on a season is seen to return."""
LEAST_OWN: Final = 0.1
"""Share of a term's information that must be left beside another term."""
_LASTING: Final = (0.0, 0.2, 0.4, 0.55, 0.7, 0.8, 0.88, 0.94, 0.97)
"""Correlation of the effects of a week and the next."""
_SHARED: Final = (0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95)
"""Shares that the common effect may have in the variance of a typical week's mean."""
_WAVES: Final = (0.02, 0.06, 0.2, 0.6, 2.0)
"""Height of the season, in standard deviations of a row within its unit and week."""
_NOTHING: Final = 1e-8
_ALMOST: Final = 1e-6
CANDIDATE: Final = "candidate"
WEEKS_A_DEGREE: Final = 5
"""So many weeks count as one degree of freedom, as weeks that follow each other are alike."""


@dataclass(frozen=True, slots=True)
class Design:
    """Columns of a regression.

    ``wanted``: what is estimated. ``others``: what it must be told apart from, by what each group
    of columns stands for in words. ``season``: columns of waves whose height is learned. ``base``:
    columns without which the wanted ones mean something else, as the trend of a change of it.
    """

    wanted: pd.DataFrame
    others: Mapping[str, pd.DataFrame]
    season: pd.DataFrame
    base: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def groups(self) -> dict[str, pd.DataFrame]:
        """The season is one more thing that a term must be told apart from."""
        return {**self.others, SEASON: self.season}

    @property
    def columns(self) -> pd.DataFrame:
        """All of them, the wanted ones first."""
        return pd.concat([self.wanted, self.base, *self.groups.values()], axis=1)


@dataclass(frozen=True, slots=True)
class _Products:
    """Cross products of the columns (x), the week effects (z) and the outcome (y), within units."""

    xx: Any
    xz: Any
    xy: Any

    def of(self, chosen: Sequence[int]) -> "_Products":
        """The same products of some columns alone."""
        rows = list(chosen)
        return _Products(self.xx[np.ix_(rows, rows)], self.xz[rows], self.xy[rows])


@dataclass(frozen=True, slots=True)
class _Effects:
    """Week effects of one size and duration.

    ``inverse``: (Z'Z + r A^-1)^-1, with their correlations A and the variance r of a row in units
    of theirs; ``determinant``: logarithm of that of the rows' covariance.
    """

    inverse: Any
    determinant: float


@dataclass(frozen=True, slots=True)
class _Solution:
    """The estimates under one size and duration of the week effects and height of the season.

    ``covariance``: of the estimates, from the week effects and the season.
    """

    likelihood: float
    values: Any
    covariance: Any
    bread: Any
    effects: _Effects
    height: float


@dataclass(frozen=True, slots=True)
class _Told:
    """Columns within units (``rows``), without what week effects tell of them (``told``).

    ``informations``: told' rows of each cluster.
    """

    rows: Any
    told: Any
    informations: Any

    def of(self, chosen: Sequence[int]) -> "_Told":
        """Return the same of the chosen columns alone."""
        places = list(chosen)
        some = self.informations[:, places][:, :, places]
        return _Told(self.rows[:, places], self.told[:, places], some)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fit, and the week effects and the season that are the most likely ones.

    ``products``, ``told``: of all columns of the design, for those that are tried in addition.
    """

    fit: Fit
    effects: _Effects
    height: float
    products: _Products
    told: _Told


def weeks_from(moments: pd.Series, start: pd.Timestamp) -> pd.Series:
    """Whole weeks from ``start``; the seven days from it on are week 0."""
    days = (moments - start).dt.total_seconds() / 86400
    return pd.Series(np.floor(days / DAYS_A_WEEK).astype(int), index=moments.index)


def span_of(weeks: pd.Series) -> int:
    """Weeks from the first to the last, both included."""
    return int(weeks.max() - weeks.min()) + 1 if len(weeks) else 0


def too_short(weeks: pd.Series) -> list[str]:
    """A warning where a season is not seen to return."""
    span = span_of(weeks)
    if span >= TWO_YEARS:
        return []
    return [
        f"only {span} weeks: in less than two years no season comes twice. One yearly wave is "
        "allowed for, but a holiday or a busy month can still look like a change"
    ]


def season(weeks: pd.Series) -> pd.DataFrame:
    """A yearly wave; where two years are seen, with a second one of half a year."""
    waves = (1, 2) if span_of(weeks) >= TWO_YEARS else (1,)
    angle = 2 * np.pi * (weeks + 0.5) / WEEKS_A_YEAR
    columns = {
        f"{name}{wave}": function(wave * angle)
        for wave in waves
        for name, function in (("sin", np.sin), ("cos", np.cos))
    }
    return pd.DataFrame(columns, index=weeks.index)


class Panel:
    """Rows of units over weeks, ready to be fitted with several designs.

    ``units``: rows are compared within them. ``clusters``: of errors; the units by default.
    ``compared``: marks the rows of the group that something happened to. Then weeks have a free
    effect on everybody, and the autoregression is what the group has beyond it (difference in
    differences).

    Raises:
        NotEstimable: too few clusters, or an outcome that is the same everywhere.
    """

    def __init__(
        self, y: Any, units: Any, weeks: pd.Series, *, clusters: Any = None, compared: Any = None
    ) -> None:
        self._clusters = pd.factorize(np.asarray(units if clusters is None else clusters))[0]
        self.count = int(self._clusters.max(initial=-1)) + 1
        if self.count < FEWEST_CLUSTERS:
            raise NotEstimable(f"not enough data: {self.count} counsellors")
        outcome = np.asarray(y, dtype=float)
        if np.ptp(outcome) == 0:
            raise NotEstimable("not enough data: the outcome is the same everywhere")
        self._units = _one_hot(pd.factorize(np.asarray(units))[0])
        self._order = np.argsort(self._clusters, kind="stable")
        self._starts = np.searchsorted(self._clusters[self._order], np.arange(self.count))
        known, places = np.unique(weeks.to_numpy(), return_inverse=True)
        self._apart = np.abs(known[:, None] - known[None, :])
        self._typical = float(np.median(np.bincount(places)))
        self._sizes = np.asarray(self._units.sum(axis=0)).ravel()
        self._free: tuple[Any, Any] | None = None
        self._weeks = _one_hot(places)
        if compared is not None:
            products = self._weeks.T @ self._within(self._weeks.toarray())
            self._free = self._weeks, np.linalg.pinv(products, rcond=_ALMOST, hermitian=True)
            self._weeks = sparse.diags(np.asarray(compared, dtype=float)) @ self._weeks
        self._zz = self._weeks.T @ self._within(self._weeks.toarray())
        self._y = self._within(outcome)
        self._zy = self._weeks.T @ self._y

    def fit(self, design: Design) -> Fitted:
        """The wanted terms, with Student's intervals.

        Raises:
            NotEstimable: a wanted term does not vary, or cannot be told apart from another.
        """
        columns = design.columns
        rows, products = self._products(columns)
        kept = self._independent(products)
        some = products.of(kept)
        waves = _waves(design, columns.columns[kept])
        grid = [
            each
            for lasting in _LASTING
            for effects in self._effects(lasting)
            for each in self._solved(some, effects, waves)
        ]
        likelihoods = np.array([each.likelihood for each in grid])
        weights = np.exp(likelihoods - likelihoods.max())
        weights /= weights.sum()
        best = grid[int(np.argmax(weights))]
        _check(self._telling(products, best.effects.inverse), products, design)
        mean = sum(w * each.values for w, each in zip(weights, grid, strict=True))
        shared = sum(
            w * (np.diag(each.covariance) + (each.values - mean) ** 2)
            for w, each in zip(weights, grid, strict=True)
        )
        told = self._told(rows, products, best.effects)
        own = np.diag(self._between_clusters(told.of(kept), some, best))
        found = self._terms(list(columns.columns[kept]), mean, own, shared)
        fit = Fit(found, len(self._y), self.count)
        return Fitted(fit, best.effects, best.height, products, told)

    def tried(self, design: Design, fitted: Fitted, candidate: pd.Series) -> dict[str, Term]:
        """A further column in the fitted design: its term ``candidate`` and the wanted ones.

        Empty where the column says nothing that the design does not.
        """
        names = pd.Index([CANDIDATE, *design.columns.columns])
        products, told = self._beside(candidate, fitted)
        kept = self._independent(products)
        if 0 not in kept:
            return {}
        some = products.of(kept)
        names = names[kept]
        waves = _waves(design, names)
        [one] = self._solved(some, fitted.effects, waves, (fitted.height,))
        own = np.diag(self._between_clusters(told.of(kept), some, one))
        return self._terms(list(names), one.values, own, np.diag(one.covariance))

    def _products(self, columns: pd.DataFrame) -> tuple[Any, _Products]:
        rows = self._within(columns.to_numpy(dtype=float))
        return rows, _Products(rows.T @ rows, (self._weeks.T @ rows).T, rows.T @ self._y)

    def _beside(self, candidate: pd.Series, fitted: Fitted) -> tuple[_Products, _Told]:
        """The products of a further column and the fitted ones, of which all is known already."""
        column = self._within(candidate.to_numpy(dtype=float))[:, None]
        known, before = fitted.products, fitted.told
        across = column.T @ before.rows
        products = _Products(
            np.block([[column.T @ column, across], [across.T, known.xx]]),
            np.vstack([(self._weeks.T @ column).T, known.xz]),
            np.concatenate([column.T @ self._y, known.xy]),
        )
        own = self._told(column, products.of([0]), fitted.effects)
        informations = np.block(
            [
                [own.informations, self._by_cluster(own.told, before.rows)],
                [self._by_cluster(before.told, column), before.informations],
            ]
        )
        rows, told = (np.hstack(pair) for pair in ((column, before.rows), (own.told, before.told)))
        return products, _Told(rows, told, informations)

    def _told(self, rows: Any, products: _Products, effects: _Effects) -> _Told:
        told = rows - self._within(self._weeks @ (effects.inverse @ products.xz.T))
        return _Told(rows, told, self._by_cluster(told, rows))

    def _by_cluster(self, one: Any, other: Any) -> Any:
        """Products of the columns of two tables, summed over each cluster."""
        return summed_by_cluster(one[self._order], other[self._order], self._starts)

    def _independent(self, products: _Products) -> list[int]:
        """Columns that vary within units and weeks, and add something to those before them."""
        by_weeks = np.linalg.inv(self._zz + self._typical * np.eye(len(self._zz)))
        information = self._telling(products, by_weeks)
        scale = np.sqrt(np.clip(np.diag(products.xx), _NOTHING, None))
        scaled = information / np.outer(scale, scale)
        kept: list[int] = []
        for place in range(len(scaled)):
            if products.xx[place, place] > _NOTHING and _left(scaled, place, kept) > _ALMOST:
                kept.append(place)
        return kept

    def _terms(self, names: Sequence[str], values: Any, own: Any, shared: Any) -> dict[str, Term]:
        errors = np.sqrt(own + shared)
        freedom = self._freedom(own, shared)
        return {
            str(name): terms([str(name)], [value], [error], float(degrees))[str(name)]
            for name, value, error, degrees in zip(names, values, errors, freedom, strict=True)
        }

    def _within(self, columns: Any) -> Any:
        """Deviations from the units' means; with a comparison, from those of weeks, too."""
        sizes = self._sizes if columns.ndim == 1 else self._sizes[:, None]
        found = columns - self._units @ ((self._units.T @ columns) / sizes)
        if self._free is None:
            return found
        weeks, inverse = self._free
        common = weeks @ (inverse @ (weeks.T @ found))
        return found - (common - self._units @ ((self._units.T @ common) / sizes))

    def _effects(self, lasting: float) -> Iterator[_Effects]:
        """Week effects that last so long, by their part of a typical week's variance.

        One decomposition serves all sizes: with Z'Z u = d A^-1 u, (Z'Z + r A^-1)^-1 is the sum of
        u u' / (d + r).
        """
        own = lasting**self._apart if lasting else np.eye(len(self._apart))
        values, vectors = linalg.eigh(self._zz, np.linalg.inv(own))
        for shared in _SHARED:
            ratio = self._typical * (1 - shared) / shared
            weights = 1 / (np.clip(values, 0, None) + ratio)
            determinant = -float(np.log(weights * ratio).sum())
            yield _Effects((vectors * weights) @ vectors.T, determinant)

    def _telling(self, products: _Products, inverse: Any) -> Any:
        """The information X' V^-1 X that the rows hold about the columns."""
        return products.xx - products.xz @ inverse @ products.xz.T

    def _solved(
        self,
        some: _Products,
        effects: _Effects,
        waves: Any,
        heights: Sequence[float] = _WAVES,
    ) -> Iterator[_Solution]:
        """The estimates under these week effects, by height of the season."""
        through = some.xz @ effects.inverse
        information = self._telling(some, effects.inverse)
        told = some.xy - through @ self._zy
        whole = float(self._y @ self._y - self._zy @ effects.inverse @ self._zy)
        by_rows = some.xx - 2 * through @ some.xz.T + through @ self._zz @ through.T
        rank = len(self._y) - self._units.shape[1] - self._absorbed() - len(told)
        for height in heights:
            bread = np.linalg.inv(information + np.diag(waves / height**2))
            values = bread @ told
            left = whole - float(told @ values)
            freedom = rank + int(waves.sum())
            likelihood = -0.5 * (
                freedom * np.log(left)
                + effects.determinant
                - np.linalg.slogdet(bread)[1]
                + 2 * waves.sum() * np.log(height)
            )
            covariance = left / freedom * (bread - bread @ by_rows @ bread)
            yield _Solution(likelihood, values, covariance, bread, effects, height)

    def _between_clusters(self, told: _Told, some: _Products, best: _Solution) -> Any:
        """Mancl and DeRouen's covariance of what the week effects leave, by cluster.

        Their correction knows the columns alone. Free effects of weeks, which are no part of a
        cluster, fit the outcome too and leave residuals that are too small: hence the rows divided
        by those that they leave free, as where effects are absorbed elsewhere.
        """
        effects = best.effects.inverse @ (self._zy - some.xz.T @ best.values)
        left = self._y - told.rows @ best.values - self._within(self._weeks @ effects)
        summed = self._by_cluster(told.told, left[:, None])
        remaining = np.eye(told.rows.shape[1]) - told.informations @ best.bread
        corrected = np.linalg.solve(remaining, summed)[:, :, 0]
        left_free = max(1, len(self._y) - self._absorbed())
        return len(self._y) / left_free * (best.bread @ corrected.T @ corrected @ best.bread)

    def _absorbed(self) -> int:
        """How many degrees of freedom the free effects of weeks use."""
        return 0 if self._free is None else len(self._apart) - 1

    def _freedom(self, own: Any, shared: Any) -> Any:
        """Welch and Satterthwaite's degrees, from clusters and weeks."""
        weeks = max(len(self._apart) / WEEKS_A_DEGREE, 4)
        return (own + shared) ** 2 / (own**2 / (self.count - 1) + shared**2 / weeks)


def _one_hot(places: Any) -> Any:
    rows = np.arange(len(places))
    return sparse.csr_matrix((np.ones(len(places)), (rows, places)))


def _waves(design: Design, names: Any) -> Any:
    """1 for the columns of the season."""
    return np.array([name in design.season for name in names], dtype=float)


def _left(information: Any, place: int, beside: Sequence[int]) -> float:
    """Information about a term that is left beside others."""
    if not beside:
        return float(information[place, place])
    others = information[np.ix_(beside, beside)]
    across = information[place, beside]
    return float(information[place, place] - across @ linalg.pinvh(others, rtol=1e-10) @ across)


def _check(information: Any, products: _Products, design: Design) -> None:
    """Each wanted term must keep a part of its information beside every other group and all."""
    scale = np.sqrt(np.clip(np.diag(products.xx), _NOTHING, None))
    scaled = information / np.outer(scale, scale)
    groups: dict[str, list[int]] = {}
    at = first = len(design.wanted.columns) + len(design.base.columns)
    for name, columns in design.groups.items():
        varies = products.xx.diagonal()[at : at + len(columns.columns)] > _NOTHING
        groups[name] = list(at + np.flatnonzero(varies))
        at += len(columns.columns)
    everything = [place for places in groups.values() for place in places]
    for place in range(len(design.wanted.columns)):
        rest = [each for each in range(first) if each != place]
        alone = _left(scaled, place, rest)
        if products.xx[place, place] <= _NOTHING or alone <= _ALMOST:
            raise NotEstimable("not enough data: no variation")
        shares = {
            name: _left(scaled, place, [*rest, *places]) / alone for name, places in groups.items()
        }
        together = _left(scaled, place, [*rest, *everything]) / alone
        if min(*shares.values(), together) >= LEAST_OWN:
            continue
        most = max(LEAST_OWN, min(shares.values()))
        close = [name for name, share in shares.items() if share <= most]
        raise NotEstimable(f"can't be told apart from {' and '.join(close)}")


def confounders(rows: pd.DataFrame, *, scored: bool = True) -> dict[str, pd.DataFrame]:
    """Return in words what else may change over time: models, and the mix of channels and domains.

    ``scored``: whether the outcome is a model's, so that another model may give another one.
    """
    found: dict[str, pd.DataFrame] = {}
    if scored:
        first = rows.groupby("bundle")["started_at"].min().sort_values()
        order = rows["bundle"].map({name: place for place, name in enumerate(first.index)})
        for place, at in list(enumerate(first))[1:]:
            name = f"the model change of {at.day} {at:%B %Y}"
            column = (order >= place).astype(float).rename(f"bundle {place}")
            found[name] = pd.concat([found.get(name, pd.DataFrame()), column.to_frame()], axis=1)
    for name in ("channel", "domain"):
        found[f"the mix of {name}s"] = dummies(rows[name], name)
    return found
