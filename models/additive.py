"""Fit of the additive risk that `stream_app.core.risk` evaluates.

Three layers, each on what the one before left: a logistic regression whose coefficients vary with
the number of turns (Hastie & Tibshirani 1993), boosted step functions of single features (Lou et
al. 2012), and Platt's scaling. All of it folds into weights and lookup tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from stream_app.core.risk import USUAL_TURNS, RiskModel, Steps

Floats = NDArray[np.float64]
TURNS = "log_counsellor_turns"
"""Never held within bounds: the progress of the session is read off it."""


@dataclass(frozen=True)
class AdditiveRecipe:
    """`strength` is the inverse of the ridge penalty; `rounds` of boosting with `rate`.

    Without rounds there are no step functions: they gained nothing in cross-validation.
    """

    strength: float = 0.3
    rounds: int = 0
    rate: float = 0.1
    bins: int = 16
    ridge: float = 3.0
    tails: float = 0.01


@dataclass
class Additive:
    """A fitted model on raw features, in the order of `names`."""

    names: list[str]
    intercept: float
    weights: Floats
    turn_weights: Floats
    low: Floats
    high: Floats
    steps: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)

    def log_odds(self, x: Floats) -> Floats:
        """Log-odds [points] of features [points, features]; equal to `core.risk.log_odds`."""
        progress = x[:, self.names.index(TURNS)] - np.log1p(USUAL_TURNS)
        held = np.clip(x, self.low, self.high)
        total = self.intercept + held @ self.weights + progress * (held @ self.turn_weights)
        for column, (edges, values) in self.steps.items():
            total = total + values[np.searchsorted(edges, held[:, column], side="right")]
        return np.asarray(total)

    def scaled(self, slope: float, offset: float) -> Additive:
        """The model whose log-odds are `slope` times these plus `offset`."""
        return replace(
            self,
            intercept=self.intercept * slope + offset,
            weights=self.weights * slope,
            turn_weights=self.turn_weights * slope,
            steps={column: (edges, v * slope) for column, (edges, v) in self.steps.items()},
        )

    def risk_model(self) -> RiskModel:
        """As the bundle holds it; alert thresholds are set elsewhere."""
        used = [i for i in range(len(self.names)) if self.names[i] != TURNS]
        return RiskModel(
            intercept=self.intercept,
            weights=dict(zip(self.names, self.weights.tolist(), strict=True)),
            min_counsellor_turns=1,
            turn_weights=dict(zip(self.names, self.turn_weights.tolist(), strict=True)),
            steps={
                self.names[column]: Steps(edges.tolist(), values.tolist())
                for column, (edges, values) in self.steps.items()
            },
            bounds={self.names[i]: (float(self.low[i]), float(self.high[i])) for i in used},
        )


def fit_additive(
    x: Floats,
    y: Floats,
    weight: Floats,
    names: Sequence[str],
    recipe: AdditiveRecipe,
) -> Additive:
    """Fit the linear and the stepwise layer on points [n, features] with outcomes [n]."""
    column = list(names).index(TURNS)
    low, high = np.quantile(x, [recipe.tails, 1 - recipe.tails], axis=0)
    low[column], high[column] = -np.inf, np.inf
    held = np.clip(x, low, high)
    centre = np.average(held, axis=0, weights=weight)
    scale = np.sqrt(np.average((held - centre) ** 2, axis=0, weights=weight))
    scale[scale < 1e-9] = np.inf
    z = (held - centre) / scale
    progress = (x[:, column] - np.log1p(USUAL_TURNS))[:, None]
    regression = LogisticRegression(C=recipe.strength, max_iter=2000)
    regression.fit(np.hstack([z, progress * z]), y, sample_weight=weight)
    plain, varying = np.split(regression.coef_[0], 2)
    weights, turn_weights = plain / scale, varying / scale
    intercept = float(regression.intercept_[0] - weights @ centre)
    # progress * (x - centre) leaves a part that is linear in the logarithm of the turns.
    drift = float(turn_weights @ centre)
    weights[column] -= drift
    intercept += drift * float(np.log1p(USUAL_TURNS))
    fitted = Additive(list(names), intercept, weights, turn_weights, low, high)
    fitted.steps = _boost(held, y, weight, fitted.log_odds(x), recipe)
    return fitted


def _boost(
    x: Floats, y: Floats, weight: Floats, offset: Floats, recipe: AdditiveRecipe
) -> dict[int, tuple[Floats, Floats]]:
    """Greedy Newton boosting with stumps from the log-odds `offset`; summed up by feature."""
    edges = [
        np.unique(np.quantile(x[:, j], np.linspace(0, 1, recipe.bins + 1)[1:-1]))
        for j in range(x.shape[1])
    ]
    width = recipe.bins
    bins = np.stack(
        [np.searchsorted(edges[j], x[:, j], side="right") for j in range(x.shape[1])], axis=1
    )
    flat = (bins + np.arange(x.shape[1]) * width).ravel()
    tables = np.zeros((x.shape[1], width))
    log_odds = offset.copy()
    for _ in range(recipe.rounds):
        p = 1.0 / (1.0 + np.exp(-log_odds))
        gradient = _histogram(flat, weight * (y - p), x.shape[1], width)
        hessian = _histogram(flat, weight * p * (1 - p), x.shape[1], width)
        g, h = gradient.cumsum(1)[:, :-1], hessian.cumsum(1)[:, :-1]
        g_all, h_all = gradient.sum(1, keepdims=True), hessian.sum(1, keepdims=True)
        gain = g**2 / (h + recipe.ridge) + (g_all - g) ** 2 / (h_all - h + recipe.ridge)
        feature, cut = np.unravel_index(int(gain.argmax()), gain.shape)
        step = np.where(
            np.arange(width) <= cut,
            g[feature, cut] / (h[feature, cut] + recipe.ridge),
            (g_all[feature, 0] - g[feature, cut])
            / (h_all[feature, 0] - h[feature, cut] + recipe.ridge),
        )
        tables[feature] += recipe.rate * step
        log_odds = log_odds + recipe.rate * step[bins[:, feature]]
    return {
        j: (edges[j], tables[j, : len(edges[j]) + 1]) for j in range(x.shape[1]) if tables[j].any()
    }


def _histogram(flat: NDArray[np.intp], values: Floats, features: int, width: int) -> Floats:
    repeated = np.repeat(values, features)
    return np.bincount(flat, repeated, features * width).reshape(features, width)


def platt(log_odds: Floats, y: Floats, weight: Floats) -> tuple[float, float]:
    """Slope and offset that calibrate the log-odds (Platt 1999)."""
    regression = LogisticRegression(C=1e6)
    regression.fit(log_odds[:, None], y, sample_weight=weight)
    return float(regression.coef_[0, 0]), float(regression.intercept_[0])
