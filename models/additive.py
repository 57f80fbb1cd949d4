"""Fit of the additive risk that `stream_app.core.risk` evaluates.

A logistic regression whose coefficients vary with the number of turns (Hastie & Tibshirani 1993),
then Platt's scaling; both fold into weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from stream_app.core.risk import USUAL_TURNS, RiskModel

Floats = NDArray[np.float64]
TURNS = "log_counsellor_turns"
"""Never held within bounds: the progress of the session is read off it."""


@dataclass(frozen=True)
class AdditiveRecipe:
    """`strength` is the inverse of the ridge penalty; features are held within `tails`."""

    strength: float = 0.3
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

    def log_odds(self, x: Floats) -> Floats:
        """Log-odds [points] of features [points, features]; equal to `core.risk.log_odds`."""
        progress = x[:, self.names.index(TURNS)] - np.log1p(USUAL_TURNS)
        held = np.clip(x, self.low, self.high)
        return np.asarray(
            self.intercept + held @ self.weights + progress * (held @ self.turn_weights)
        )

    def scaled(self, slope: float, offset: float) -> Additive:
        """The model whose log-odds are `slope` times these plus `offset`."""
        return replace(
            self,
            intercept=self.intercept * slope + offset,
            weights=self.weights * slope,
            turn_weights=self.turn_weights * slope,
        )

    def risk_model(self) -> RiskModel:
        """As the bundle holds it; alert thresholds are set elsewhere."""
        used = [i for i in range(len(self.names)) if self.names[i] != TURNS]
        return RiskModel(
            intercept=self.intercept,
            weights=dict(zip(self.names, self.weights.tolist(), strict=True)),
            min_counsellor_turns=1,
            turn_weights=dict(zip(self.names, self.turn_weights.tolist(), strict=True)),
            bounds={self.names[i]: (float(self.low[i]), float(self.high[i])) for i in used},
        )


def fit_additive(
    x: Floats,
    y: Floats,
    weight: Floats,
    names: Sequence[str],
    recipe: AdditiveRecipe,
) -> Additive:
    """Fit on points [n, features] with outcomes [n]."""
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
    return Additive(list(names), intercept, weights, turn_weights, low, high)


def platt(log_odds: Floats, y: Floats, weight: Floats) -> tuple[float, float]:
    """Slope and offset that calibrate the log-odds (Platt 1999)."""
    regression = LogisticRegression(C=1e6)
    regression.fit(log_odds[:, None], y, sample_weight=weight)
    return float(regression.coef_[0, 0]), float(regression.intercept_[0])
