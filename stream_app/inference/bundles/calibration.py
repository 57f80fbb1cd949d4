"""From the head graph's logits to calibrated probabilities and levels."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from stream_app.contracts.scores import SCALE
from stream_app.inference.bundles.bundle import HeadSpec, Manifest
from stream_app.inference.bundles.recalibration import Floats, recalibrated

EPSILON: Final = 1e-12
"""Added to probabilities before their logarithm, as in ``models.fit.calibrate``."""


class Calibration:
    """The temperatures and biases of several heads, applied to all of them at once.

    The arrays are small, so a loop over the heads would cost more than the numbers. ``starts``: the
    first column of each head among the columns of all heads.
    """

    def __init__(self, heads: Sequence[HeadSpec]) -> None:
        self._names = [head.name for head in heads]
        self._sizes = np.array([len(head.labels) for head in heads])
        self._temperatures = np.repeat([head.temperature for head in heads], self._sizes)
        self._biases = np.concatenate([head.bias or [0.0] * len(head.labels) for head in heads])
        ends = np.cumsum(self._sizes)
        self.starts = ends - self._sizes
        self.columns = {
            name: slice(start, end)
            for name, start, end in zip(
                self._names, self.starts.tolist(), ends.tolist(), strict=True
            )
        }

    def probabilities(self, logits: Mapping[str, npt.NDArray[np.float32]]) -> Floats:
        """Probabilities [n, labels of all heads] from logits [n, labels] by head."""
        found = np.concatenate([logits[name] for name in self._names], axis=1, dtype=np.float64)
        found /= self._temperatures
        found += self._biases
        found -= self._spread(self.largest(found))
        np.exp(found, out=found)
        found /= self._spread(np.add.reduceat(found, self.starts, axis=1))
        return found

    def largest(self, values: Floats) -> Floats:
        """The largest value of each head: [n, labels of all heads] to [n, heads]."""
        return np.asarray(np.maximum.reduceat(values, self.starts, axis=1))

    def by_head(self, values: Floats) -> dict[str, Floats]:
        """Views [n, labels] by head."""
        return {name: values[:, columns] for name, columns in self.columns.items()}

    def joined(self, values: Mapping[str, Floats]) -> Floats:
        """The reverse of ``by_head``."""
        return np.concatenate([values[name] for name in self._names], axis=1)

    def _spread(self, values: Floats) -> Floats:
        return np.repeat(values, self._sizes, axis=1)


class Decisions:
    """A bundle's mapping of logits: calibration, then the adaptations to its installation."""

    def __init__(self, manifest: Manifest) -> None:
        self.calibration = Calibration(manifest.heads)
        self._adaptations = manifest.adaptations

    def probabilities(self, logits: Mapping[str, npt.NDArray[np.float32]]) -> Floats:
        """Probabilities [n, labels of all heads]."""
        found = self.calibration.probabilities(logits)
        for adaptation in self._adaptations:
            changed = recalibrated(self.calibration.by_head(found), adaptation.heads)
            found = self.calibration.joined(changed)
        return found


def calibrated(
    manifest: Manifest, logits: Mapping[str, npt.NDArray[np.float32]]
) -> dict[str, Floats]:
    """Probabilities [n, labels] by head from the head graph's logits, after all adaptations."""
    decisions = Decisions(manifest)
    return decisions.calibration.by_head(decisions.probabilities(logits))


def calibrate(head: HeadSpec, logits: npt.NDArray[np.float32]) -> Floats:
    """Calibrated probabilities [n, labels] from a head's logits [n, labels]."""
    return Calibration([head]).probabilities({head.name: logits})


def choose_labels(
    probabilities: Floats | list[float], offsets: list[float]
) -> npt.NDArray[np.int64]:
    """The label with the largest log probability plus offset: [..., labels] to [...]."""
    shifted = np.log(np.asarray(probabilities) + EPSILON) + (offsets or 0.0)
    return np.asarray(shifted.argmax(axis=-1))


def rounded(probabilities: Floats) -> Floats:
    """Probabilities as the nearest whole ten-thousandths; their sum may differ a little from 1."""
    return np.asarray(np.rint(probabilities * SCALE) / SCALE)
