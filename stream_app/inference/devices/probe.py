"""A bundle's probes of client turns: distress and crisis language.

Logistic regressions on a turn's vectors, without context, fitted by ``python -m
models.fit.distress`` and ``python -m models.crisis``.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from stream_app.errors import BundleError


class TurnProbe:
    """``probability = sigmoid(weights · vectors + bias)``."""

    def __init__(self, weights: npt.NDArray[np.float64], bias: float) -> None:
        self.weights = weights
        self.bias = bias

    @classmethod
    def read(cls, path: Path, size: int | None = None) -> "TurnProbe":
        """Read a probe from a file: one array with the weights, then the bias.

        Raises:
            BundleError: the file is not a probe, or has another size of vectors.
        """
        try:
            numbers = np.load(path, allow_pickle=False).astype(np.float64)
        except (OSError, ValueError) as problem:
            raise BundleError(f"{path} is not a probe: {problem}") from None
        if numbers.ndim != 1 or (size is not None and len(numbers) != size + 1):
            raise BundleError(f"{path} is not a probe for vectors of {size} numbers")
        return cls(numbers[:-1], float(numbers[-1]))

    def probabilities(self, vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """Probabilities [n] for vectors [n, size]."""
        # not a matrix product, which would use BLAS threads that spin
        logits = np.einsum("nd,d->n", vectors.astype(np.float64), self.weights) + self.bias
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0))))
