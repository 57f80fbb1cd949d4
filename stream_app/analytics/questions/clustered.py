"""Regression and bands for repeated observations of the same counsellors.

Generalised estimating equations with an independence working correlation (valid with covariates
that vary in time: Pepe & Anderson 1994) and the covariance of Mancl & DeRouen (2001), which
corrects the sandwich estimator's bias with few clusters; intervals use Student's t with G - 1
degrees of freedom for G clusters. Plain sandwich intervals are too narrow below about 50 clusters.

A client who returns to another counsellor makes rows of two clusters alike: errors are clustered by
client, too, where the rows' clients are given.

Under independence the coefficients are those of a generalised linear model. statsmodels' ``GEE``
has this covariance, too, but solves a system as large as each cluster.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.genmod import families
from statsmodels.genmod.generalized_linear_model import GLM
from statsmodels.stats.multitest import multipletests

FEWEST_CLUSTERS: Final = 5
LEVEL: Final = 0.95
FAMILIES: Final = {
    "gaussian": families.Gaussian,
    "poisson": families.Poisson,
    "binomial": families.Binomial,
}


class NotEstimable(Exception):
    """Why a model cannot be fitted, in words for people."""


@dataclass(frozen=True, slots=True)
class Term:
    """A coefficient with its 95 % interval, two-sided p-value and standard error."""

    value: float
    low: float
    high: float
    p: float
    error: float | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """``terms`` by column; ``n`` rows in ``clusters`` clusters."""

    terms: Mapping[str, Term]
    n: int
    clusters: int


def gee(
    y: Any,
    design: pd.DataFrame,
    clusters: Any,
    family: str = "gaussian",
    *,
    weights: Any = None,
    clients: Any = None,
) -> Fit:
    """Fit a marginal model; constant and collinear columns of the design are left out.

    ``weights``: of the rows of a linear model, one each by default. ``clients``: of the rows; where
    they return to other counsellors, errors are clustered by them, too.

    Raises:
        NotEstimable: too few clusters, or no variation to estimate from.
    """
    groups = pd.factorize(pd.Series(clusters))[0]
    count = int(groups.max(initial=-1)) + 1
    if count < FEWEST_CLUSTERS:
        raise NotEstimable(f"not enough data: {count} counsellors")
    outcome = np.asarray(y, dtype=float)
    if np.ptp(outcome) == 0:
        raise NotEstimable("not enough data: the outcome is the same everywhere")
    exog = _independent(design)
    root = np.ones(len(outcome)) if weights is None else np.sqrt(np.asarray(weights, dtype=float))
    model = GLM(outcome * root, exog.to_numpy() * root[:, None], family=FAMILIES[family]())
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            params = np.asarray(model.fit(maxiter=100, wls_method="qr").params)
            variance = np.diag(_covariance(model, params, groups))
            if clients is not None:
                variance = variance + _of_returning(model, params, groups, clients)
        except (np.linalg.LinAlgError, ValueError):
            raise NotEstimable("the model cannot be fitted to these data") from None
    if not np.all(np.isfinite(variance)) or np.any(variance <= 0):
        raise NotEstimable("the model cannot be fitted to these data")
    return Fit(
        terms(list(exog.columns), params, np.sqrt(variance), count - 1),
        len(outcome),
        count,
    )


def _covariance(model: Any, params: Any, groups: Any) -> Any:
    """Mancl and DeRouen's equation 6, which takes (I - H)^-1 of each cluster's residuals.

    H = D B A, with the means' derivatives D, B = (sum of A D)^-1 and A = D' V^-1. The sandwich
    needs A (I - H)^-1 only, which equals (I - A D B)^-1 A: as large as the coefficients are many.
    """
    linear = model.exog @ params
    means = model.family.link.inverse(linear)
    derivatives = model.exog * model.family.link.inverse_deriv(linear)[:, None]
    weighted = derivatives / model.family.variance(means)[:, None]
    residuals = (model.endog - means)[:, None]
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(int(groups.max()) + 1))
    informations = summed_by_cluster(weighted[order], derivatives[order], starts)
    summed = summed_by_cluster(weighted[order], residuals[order], starts)[:, :, 0]
    bread = np.linalg.inv(informations.sum(axis=0))
    remaining = np.eye(len(params)) - informations @ bread
    corrected = np.linalg.solve(remaining, summed[:, :, None])[:, :, 0]
    return bread @ corrected.T @ corrected @ bread


def summed_by_cluster(one: Any, other: Any, starts: Any) -> Any:
    """Products of the columns of two tables, summed over each cluster of rows.

    ``starts``: first rows of the clusters, whose rows follow each other. Large platforms have
    thousands of clusters: slicing each costs more than the sums.
    """
    sums = [np.add.reduceat(one * column[:, None], starts) for column in other.T]
    return np.stack(sums, axis=2)


def _of_returning(model: Any, params: Any, groups: Any, clients: Any) -> Any:
    """Return what clients with several counsellors add to the variances; never negative.

    Cameron, Gelbach and Miller's (2011) clustering in two ways: the covariance by client less that
    by client and counsellor. Clients are many and have few rows, so neither is corrected.
    """
    people = pd.factorize(pd.Series(clients))[0]
    meetings = pd.factorize(people.astype(np.int64) * (int(groups.max()) + 1) + groups)[0]
    if meetings.max() == people.max():
        return np.zeros(len(params))
    scores, informations = _scores(model, params)
    bread = np.linalg.inv(informations.T @ informations)
    parts = []
    for places in (people, meetings):
        by_column = (np.bincount(places, weights=column) for column in scores.T)
        summed = np.stack(list(by_column), axis=1)
        parts.append(np.diag(bread @ (summed.T @ summed) @ bread))
    return np.clip(parts[0] - parts[1], 0, None)


def _scores(model: Any, params: Any) -> tuple[Any, Any]:
    """Scores of the rows, and a root of their information."""
    linear = model.exog @ params
    means = model.family.link.inverse(linear)
    slopes = model.family.link.inverse_deriv(linear)
    spread = np.sqrt(model.family.variance(means))
    root = model.exog * (slopes / spread)[:, None]
    return root * ((model.endog - means) / spread)[:, None], root


def terms(names: list[str], values: Any, errors: Any, freedom: float) -> dict[str, Term]:
    """Coefficients with Student's intervals."""
    reach = stats.t.ppf(0.5 + LEVEL / 2, freedom)
    return {
        name: Term(
            float(value),
            float(value - reach * error),
            float(value + reach * error),
            float(2 * stats.t.sf(abs(value / error), freedom)),
            float(error),
        )
        for name, value, error in zip(names, values, errors, strict=True)
    }


def _independent(design: pd.DataFrame) -> pd.DataFrame:
    """An intercept and the columns that add something to those before them."""
    kept = {"intercept": np.ones(len(design))}
    basis = np.empty((1 + len(design.columns), len(design)))
    basis[0] = 1 / np.sqrt(len(design))
    for name in design.columns:
        column = design[name].to_numpy(dtype=float)
        known = basis[: len(kept)]
        rest = column - (known @ column) @ known
        rest -= (known @ rest) @ known  # Gram-Schmidt is orthogonal only if it is repeated
        length = np.linalg.norm(rest)
        if length > 1e-8 * max(1.0, float(np.linalg.norm(column))):
            basis[len(kept)] = rest / length
            kept[str(name)] = column
    return pd.DataFrame(kept)


def dummies(values: pd.Series, prefix: str) -> pd.DataFrame:
    """Indicator columns of all values but the most frequent one."""
    known, names = pd.factorize(values.fillna("not stated").astype(str), sort=True)
    reference = np.bincount(known).argmax()
    columns = {
        f"{prefix}={name}": (known == place).astype(float)
        for place, name in enumerate(names)
        if place != reference
    }
    return pd.DataFrame(columns, index=values.index)


def holm(p_values: list[float]) -> list[float]:
    """Holm's correction for the comparisons of one table."""
    return [float(p) for p in multipletests(p_values, method="holm")[1]] if p_values else []


def bands(
    frame: pd.DataFrame, value: str, bins: str, cluster: str, *, draws: int = 500, seed: int = 1
) -> pd.DataFrame:
    """Mean by bin with 95 % percentile bands from a bootstrap over clusters.

    Returns:
        One row a bin, with ``value``, ``low``, ``high`` and ``n``.
    """
    rows, _ = pd.factorize(frame[cluster])
    columns, labels = pd.factorize(frame[bins], sort=True)
    shape = (int(rows.max()) + 1, len(labels))
    sums, counts = np.zeros(shape), np.zeros(shape)
    np.add.at(sums, (rows, columns), frame[value].to_numpy(dtype=float))
    np.add.at(counts, (rows, columns), 1)
    generator = np.random.default_rng(seed)
    weights = generator.multinomial(shape[0], np.full(shape[0], 1 / shape[0]), size=draws)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = (weights @ sums) / (weights @ counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        low, high = np.nanpercentile(drawn, [2.5, 97.5], axis=0)
    total = counts.sum(axis=0)
    means = sums.sum(axis=0) / total
    found = {"value": means, "low": low, "high": high, "n": total.astype(int)}
    return pd.DataFrame(found, index=labels)
