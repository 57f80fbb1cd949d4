"""Jointly fitted outcome models: coefficients shared by all domains, plus deviations by domain.

Every outcome is a ridge logistic regression on features scaled by its own domain's training
constants (bounds, mean, standard deviation). The coefficient of a feature in a domain is a shared
part plus a deviation, both shrunk towards 0 (the augmented design [x, x · 1(domain)] of Evgeniou &
Pontil 2004, also Daumé 2007), so that the domains share strength and can still differ. In running
sessions, coefficients also vary with the number of turns (Hastie & Tibshirani 1993). Platt's
scaling follows; everything folds into the weights that `stream_app.core.measures.outcomes`
evaluates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from models.data.split import fold_of
from models.evaluate.replay import Trajectory
from models.outcomes.labels import OutcomeSpec
from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures.outcomes import USUAL_TURNS, OutcomeModel

Floats = NDArray[np.float64]
TURNS = "log_counsellor_turns"
"""The number of turns scales coefficients but is no feature: a session's length reveals its file.
"""
CALIBRATION_FOLDS = 4
FREE = 10.0
"""Scale of the columns of the domains' intercepts: their ridge penalty is negligible."""
COUNTED = (
    *("questions_per_turn", "open_question_share", "reflections_per_turn"),
    *(
        "complex_reflection_share",
        *(f"{m}_{when}" for m in MECHANISMS for when in ("mean", "recent")),
    ),
)
"""Counts of most probable labels, and duplicates of `expected.*`; replaced by `conduct.*`."""


def usable(name: str) -> bool:
    """Whether a feature may be an input: no count of turns, none of `COUNTED`."""
    return not name.endswith("log_turns") and name not in (TURNS, *COUNTED)


def is_conduct(name: str) -> bool:
    """Whether a feature describes conduct (counsellor or client) by the coding manual."""
    return name.startswith("conduct.") or name == "talk_share"


@dataclass(frozen=True)
class Recipe:
    """Hyper-parameters of the fit.

    `strength` is the inverse of the ridge penalty. `deviation` and `other` are prior variances
    relative to that of a shared conduct coefficient: of a domain's deviation, and of features other
    than conduct. `balance` in [0, 1] weighs domains by their number of sessions (0) or equally (1).
    Features are clipped to the `tails` quantiles. Without `shared` every outcome is fitted on its
    own. The values were chosen before any figure of the folds was seen, on outputs of bundle 1.6.0
    (which had trained on the same sessions).
    """

    strength: float = 0.03
    deviation: float = 0.5
    other: float = 0.25
    balance: float = 0.75
    tails: float = 0.01
    varying: bool = True
    shared: bool = True
    keep: Callable[[str], bool] = usable
    seed: int = 17


CLOSING = Recipe(varying=False)
"""For sessions that have ended: one point per session."""


@dataclass
class Additive:
    """A fitted model on raw features, in the order of `names`, and the log of the turns."""

    names: list[str]
    intercept: float
    weights: Floats
    turn_weights: Floats
    low: Floats
    high: Floats
    turn_slope: float = 0.0

    def log_odds(self, x: Floats, turns: Floats) -> Floats:
        """Log-odds [points]; x [points, features], turns [points] = log(1 + counsellor turns)."""
        progress = turns - np.log1p(USUAL_TURNS)
        held = np.clip(x, self.low, self.high)
        return np.asarray(
            self.intercept
            + held @ self.weights
            + progress * (held @ self.turn_weights)
            + turns * self.turn_slope
        )

    def scaled(self, slope: float, offset: float) -> Additive:
        """Scale and shift the model's log-odds."""
        return replace(
            self,
            intercept=self.intercept * slope + offset,
            weights=self.weights * slope,
            turn_weights=self.turn_weights * slope,
            turn_slope=self.turn_slope * slope,
        )

    def outcome_model(self, spec: OutcomeSpec, closing: OutcomeModel | None = None) -> OutcomeModel:
        """Convert to the bundle's format, without features of weight 0."""
        used = np.flatnonzero((self.weights != 0.0) | (self.turn_weights != 0.0)).tolist()
        weights = {self.names[i]: float(self.weights[i]) for i in used}
        if self.turn_slope:
            weights[TURNS] = self.turn_slope
        return OutcomeModel(
            intercept=self.intercept,
            weights=weights,
            domain=spec.domain,
            approach=spec.approach,
            turn_weights={
                self.names[i]: float(self.turn_weights[i]) for i in used if self.turn_weights[i]
            },
            bounds={self.names[i]: (float(self.low[i]), float(self.high[i])) for i in used},
            closing=closing,
        )


@dataclass
class Points:
    """Stacked points of many sessions: x [points, names], turns as in `Additive.log_odds`.

    Each session has weight 1 over all its points. Points with equal `group` [points] are held out
    together.
    """

    x: Floats
    turns: Floats
    y: NDArray[np.bool_]
    weight: Floats
    group: NDArray[np.str_]

    def where(self, chosen: NDArray[np.bool_]) -> Points:
        """Some of the points."""
        return Points(
            self.x[chosen],
            self.turns[chosen],
            self.y[chosen],
            self.weight[chosen],
            self.group[chosen],
        )

    @property
    def both(self) -> bool:
        """Whether both classes occur."""
        return 0 < int(self.y.sum()) < len(self.y)


def stack(
    found: Mapping[int, Trajectory],
    truth: Mapping[int, bool],
    names: Sequence[str],
    groups: Sequence[str],
    *,
    closing: bool,
) -> Points:
    """Points of the sessions in `truth`: the last one if `closing`, else all before it."""
    chosen = [item for i, item in found.items() if i in truth]
    parts = [item.closing[None] if closing else item.points for item in chosen]
    sizes = [len(part) for part in parts]
    x = np.concatenate(parts) if parts else np.zeros((0, len(names)))
    return Points(
        x,
        x[:, names.index(TURNS)],
        np.repeat(np.array([truth[item.session] for item in chosen], bool), sizes),
        np.repeat(1.0 / np.array(sizes, float), sizes),
        np.repeat(np.array([groups[item.session] for item in chosen], str), sizes),
    )


@dataclass
class _Scaling:
    """A domain's training constants, [features] each."""

    low: Floats
    high: Floats
    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, points: Points, tails: float) -> _Scaling:
        low, high = np.quantile(points.x, [tails, 1.0 - tails], axis=0)
        held = np.clip(points.x, low, high)
        centre = np.average(held, axis=0, weights=points.weight)
        scale = np.sqrt(np.average((held - centre) ** 2, axis=0, weights=points.weight))
        scale[scale < 1e-9] = np.inf
        return cls(low, high, centre, scale)

    def __call__(self, x: Floats) -> Floats:
        return np.asarray((np.clip(x, self.low, self.high) - self.centre) / self.scale)


def fit_family(
    points: Mapping[str, Points], names: Sequence[str], recipe: Recipe
) -> dict[str, Additive]:
    """Fit the uncalibrated models of all outcomes that have sessions of both classes."""
    known = {name: part for name, part in points.items() if part.both}
    if not recipe.shared and len(known) > 1:
        return {n: fit_family({n: part}, names, recipe)[n] for n, part in known.items()}
    if not known:
        return {}
    columns = [i for i, name in enumerate(names) if recipe.keep(name)]
    kept = [names[i] for i in columns]
    own = {name: replace(part, x=part.x[:, columns]) for name, part in known.items()}
    scalings = {name: _Scaling.of(part, recipe.tails) for name, part in own.items()}
    variance = np.array([1.0 if is_conduct(name) else recipe.other for name in kept])
    worth = np.tile(np.sqrt(variance), 2 if recipe.varying else 1)
    rows = [
        _design(scalings[name](part.x), part.turns, number, len(own), worth, recipe)
        for number, (name, part) in enumerate(own.items())
    ]
    usual = float(np.mean([part.weight.sum() for part in own.values()]))
    weight = [part.weight * (usual / part.weight.sum()) ** recipe.balance for part in own.values()]
    regression = LogisticRegression(C=recipe.strength, max_iter=2000)
    regression.fit(
        np.concatenate(rows),
        np.concatenate([part.y for part in own.values()]),
        sample_weight=np.concatenate(weight),
    )
    width = len(worth)
    shared, *parts = np.split(regression.coef_[0][len(own) :], len(own) + 1)
    return {
        name: _unscaled(
            kept,
            (shared + np.sqrt(recipe.deviation) * parts[number]) * worth,
            float(regression.intercept_[0] + FREE * regression.coef_[0][number]),
            scalings[name],
            width // len(kept) > 1,
        )
        for number, name in enumerate(own)
    }


def _design(
    z: Floats, turns: Floats, number: int, domains: int, worth: Floats, recipe: Recipe
) -> Floats:
    """Columns: the domains' intercepts, the shared coefficients, each domain's deviations."""
    progress = (turns - np.log1p(USUAL_TURNS))[:, None]
    inputs = (np.hstack([z, progress * z]) if recipe.varying else z) * worth
    found = np.zeros((len(z), domains + (1 + domains) * len(worth)))
    found[:, number] = FREE
    found[:, domains : domains + len(worth)] = inputs
    first = domains + (1 + number) * len(worth)
    found[:, first : first + len(worth)] = inputs * np.sqrt(recipe.deviation)
    return found


def _unscaled(
    names: list[str], coefficients: Floats, intercept: float, by: _Scaling, varying: bool
) -> Additive:
    """Convert a model to raw features."""
    plain = coefficients[: len(names)] / by.scale
    moving = coefficients[len(names) :] / by.scale if varying else np.zeros(len(names))
    # progress * (x - centre) contributes a part that is linear in the logarithm of the turns.
    drift = float(moving @ by.centre)
    return Additive(
        names,
        intercept - float(plain @ by.centre) + drift * float(np.log1p(USUAL_TURNS)),
        plain,
        moving,
        by.low,
        by.high,
        -drift,
    )


def fit_calibrated(
    points: Mapping[str, Points], names: Sequence[str], recipe: Recipe
) -> dict[str, Additive]:
    """Fit the models, with Platt scaling from inner folds of each outcome's sessions."""
    columns = {name for name in names if recipe.keep(name)}
    chosen = [i for i, name in enumerate(names) if name in columns]
    inner = {
        name: np.array(
            [fold_of(f"platt:{g}", recipe.seed, CALIBRATION_FOLDS) for g in part.group], int
        )
        for name, part in points.items()
    }
    log_odds = {name: np.full(len(part.y), np.nan) for name, part in points.items()}
    for fold in range(CALIBRATION_FOLDS):
        rest = {name: part.where(inner[name] != fold) for name, part in points.items()}
        for name, model in fit_family(rest, names, recipe).items():
            out, part = inner[name] == fold, points[name]
            log_odds[name][out] = model.log_odds(part.x[out][:, chosen], part.turns[out])
    found = {}
    for name, model in fit_family(points, names, recipe).items():
        part, known = points[name], ~np.isnan(log_odds[name])
        slope, offset = platt(log_odds[name][known], part.y[known], part.weight[known])
        found[name] = model.scaled(slope, offset)
    return found


def platt(log_odds: Floats, y: NDArray[np.bool_], weight: Floats) -> tuple[float, float]:
    """Slope, at least 0, and offset that calibrate the log-odds (Platt 1999).

    His targets, (n + 1) / (n + 2) instead of 1, bound the slope for few sessions.
    """
    positive, negative = float(weight[y].sum()), float(weight[~y].sum())
    target = np.where(y, (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0))
    base = float(np.average(target, weights=weight)) if len(y) else 0.5
    even = (0.0, float(np.log(base / (1.0 - base))))
    if not positive or not negative:
        return even
    regression = LogisticRegression(C=1e6)
    regression.fit(
        np.tile(log_odds, 2)[:, None],
        np.repeat([1, 0], len(y)),
        sample_weight=np.concatenate([weight * target, weight * (1.0 - target)]),
    )
    slope = float(regression.coef_[0, 0])
    return (slope, float(regression.intercept_[0])) if slope > 0.0 else even
