"""Recalibration of heads to an installation's raters, after the bundle's own calibration.

    p'(head) = softmax(log p(head) + intercept + sum over inputs of weights @ log p(input))

Without inputs it shifts the base rates (Saerens et al. 2002); with the head itself as its input it
is Dirichlet calibration (Kull et al. 2019, section 3); with other heads as well it is a stacked
generaliser (Wolpert 1992). All zeros leave the bundle's probabilities as they are.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from stream_app.inference.bundles.adaptations import Recalibration

FLOOR: Final = 1e-3
"""Inputs are clipped to this probability, so that no certain head outweighs the others."""
EPSILON: Final = 1e-12

Floats = npt.NDArray[np.float64]


def log_inputs(probabilities: Floats) -> Floats:
    """Inputs [n, labels] from probabilities [n, labels]."""
    return np.asarray(np.log(np.clip(probabilities, FLOOR, 1.0)))


def softmax(logits: Floats) -> Floats:
    """Probabilities over the last axis."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def recalibrated(
    probabilities: Mapping[str, Floats], changes: Mapping[str, Recalibration]
) -> dict[str, Floats]:
    """The probabilities [n, labels] by head after one adaptation; all read those before it.

    A row never depends on the other rows, not even in its last bit (no matrix product).
    """
    found = dict(probabilities)
    for name, change in changes.items():
        logits = np.log(probabilities[name] + EPSILON) + np.array(change.intercept)
        for other, weights in change.weights.items():
            read = log_inputs(probabilities[other])
            for column, by_label in enumerate(zip(*weights, strict=True)):
                logits += read[:, column, None] * np.array(by_label)
        found[name] = softmax(logits)
    return found
