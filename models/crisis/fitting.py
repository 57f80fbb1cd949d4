"""Fits the crisis probe: a logistic regression on the vectors that the worker has anyway.

Positive are the written training turns of crisis language; negative their hard negatives and turns
of public corpora, which are assumed to contain none (those with a phrase of the list are left out).
The bias is moved so that a probability of 0.5 is the threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from models.fit.standardised import centre_and_divisor
from stream_app.inference.devices.probe import TurnProbe

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
STRENGTH = 0.01
"""Inverse L2 penalty on standardised vectors; 0.001 to 0.1 give the same AUROC within 0.03."""
ASSUMED_WEIGHT = 3.0
"""Weight of all assumed negatives together, as a multiple of that of the written turns."""
FOLDS = 8
BUDGET = 0.002
"""Share of the assumed negatives that may be found: the threshold in force."""
RECALL = 0.95
"""The other threshold that is reported: this recall on unseen families of the training part."""


@dataclass(frozen=True)
class Training:
    """Vectors [rows, size]; `families` of the written turns, which no fold divides."""

    written: Floats
    is_crisis: Flags
    families: NDArray[Any]
    assumed: Floats


@dataclass(frozen=True)
class Fitted:
    """The probe with its threshold at 0.5, and what cross-validation said of the training part.

    `for_recall`: the probability from which `RECALL` of the crisis turns of unseen families is
    found. `recall`: of those turns at 0.5. `out_of_fold`: their log-odds, and of the others.
    """

    probe: TurnProbe
    for_recall: float
    recall: float
    out_of_fold: Floats
    is_crisis: Flags


def fit_probe(training: Training) -> Fitted:
    """Choose the threshold by cross-validation and fit on all training turns."""
    written, assumed = _out_of_fold(training)
    threshold = float(np.quantile(assumed, 1.0 - BUDGET))
    for_recall = float(np.quantile(written[training.is_crisis], 1.0 - RECALL))
    weights, bias = _fit(training.written, training.is_crisis, training.assumed)
    return Fitted(
        TurnProbe(weights, bias - threshold),
        1.0 / (1.0 + float(np.exp(threshold - for_recall))),
        float((written[training.is_crisis] >= threshold).mean()),
        written,
        training.is_crisis,
    )


def _out_of_fold(training: Training) -> tuple[Floats, Floats]:
    """Log-odds of the written and of the assumed turns, by models that have not seen them."""
    written, assumed = np.zeros(len(training.written)), np.zeros(len(training.assumed))
    place = np.arange(len(assumed)) % FOLDS
    folds = GroupKFold(FOLDS).split(training.written, training.is_crisis, training.families)
    for fold, (known, unseen) in enumerate(folds):
        out = place == fold
        weights, bias = _fit(
            training.written[known], training.is_crisis[known], training.assumed[~out]
        )
        written[unseen] = training.written[unseen] @ weights + bias
        assumed[out] = training.assumed[out] @ weights + bias
    return written, assumed


def _fit(written: Floats, is_crisis: Flags, assumed: Floats) -> tuple[Floats, float]:
    x = np.concatenate([written, assumed])
    y = np.concatenate([is_crisis, np.zeros(len(assumed), bool)])
    share = ASSUMED_WEIGHT * len(written) / len(assumed)
    weight = np.concatenate([np.ones(len(written)), np.full(len(assumed), share)])
    centre, divisor = centre_and_divisor(x)
    found = LogisticRegression(C=STRENGTH, max_iter=2000).fit(
        (x - centre) / divisor, y, sample_weight=weight
    )
    weights = found.coef_[0] / divisor
    return weights, float(found.intercept_[0] - weights @ centre)
