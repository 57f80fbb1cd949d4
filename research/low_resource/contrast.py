"""One- and two-utterance classifiers of a contrast, on frozen vectors (section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from research.low_resource.exchanges import Exchange, sentences
from research.sentence_vectors import SentenceEncoder

Floats = NDArray[np.floating[Any]]
Flags = NDArray[np.bool_]
PENALTY = 0.1
"""Of the squared distance from the start, against the sum of the log-losses."""


def inputs(exchanges: Sequence[Exchange], encode: SentenceEncoder, utterances: int) -> Floats:
    """Vectors of the answer (1) or of both utterances (2), with a constant, [n, size + 1].

    A missing first utterance is a vector of zeros.
    """
    columns = [encode([exchange.answer for exchange in exchanges])]
    if utterances == 2:
        before = encode([exchange.before for exchange in exchanges])
        said = np.array([[bool(exchange.before.strip())] for exchange in exchanges])
        columns.insert(0, before * said)
    return np.concatenate([*columns, np.ones((len(exchanges), 1))], axis=1)


def fit(features: Floats, empathic: Flags, start: Floats | None = None) -> Floats:
    """Weights [size] of a logistic regression, penalised by their distance from `start`.

    Without a start it is ridge regression towards zero. With one, few labels move it little: the
    start stands for fine-tuning from the contrast model, the future work of section 6.
    """
    begin = np.zeros(features.shape[1]) if start is None else start
    sign = np.where(empathic, 1.0, -1.0)

    def loss(weights: Floats) -> tuple[float, Floats]:
        margin = sign * (features @ weights)
        away = weights - begin
        gradient = -features.T @ (sign * expit(-margin)) + PENALTY * away
        return float(np.logaddexp(0, -margin).sum() + PENALTY / 2 * away @ away), gradient

    found: Floats = minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": 300}).x
    return found


@dataclass(frozen=True)
class Contrast:
    """A fitted contrast classifier for one or two utterances."""

    weights: Floats
    utterances: int
    encode: SentenceEncoder

    def log_odds(self, exchanges: Sequence[Exchange]) -> Floats:
        """Log-odds of empathy, [n]."""
        found: Floats = inputs(exchanges, self.encode, self.utterances) @ self.weights
        return found

    def empathic(self, exchanges: Sequence[Exchange]) -> Flags:
        """Predictions, [n]."""
        return np.asarray(self.log_odds(exchanges) > 0)

    def empathic_by_sentence(self, exchanges: Sequence[Exchange]) -> Flags:
        """Whether any sentence of the answer is empathic, [n] (the paper's future work, section 7).

        An utterance counts as empathic as long as a part of it is (section 3.2.1).
        """
        parts = [
            (number, Exchange(exchange.before, part))
            for number, exchange in enumerate(exchanges)
            for part in sentences(exchange.answer)
        ]
        odds = self.log_odds([part for _, part in parts])
        highest = np.full(len(exchanges), -np.inf)
        np.maximum.at(highest, [number for number, _ in parts], odds)
        return np.asarray(highest > 0)


def trained(
    positive: Sequence[Exchange],
    negative: Sequence[Exchange],
    encode: SentenceEncoder,
    utterances: int,
) -> Contrast:
    """A classifier from equally many exchanges of both sides."""
    count = min(len(positive), len(negative))
    both = [*positive[:count], *negative[:count]]
    empathic = np.arange(2 * count) < count
    return Contrast(fit(inputs(both, encode, utterances), empathic), utterances, encode)
