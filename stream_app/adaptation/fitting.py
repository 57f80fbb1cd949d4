"""Fits the recalibration of one head, shrunk towards the bundle as it is.

Every family adds to the head's log probabilities, and its parameters have a normal prior with mean
0: with few ratings the result is the bundle's own probabilities (ridge, Hoerl and Kennard 1970).

    shift      a number per label                   Saerens et al. 2002, section 2
    scale      one factor, a number per label       Alexandari et al. 2020 (bias-corrected)
    dirichlet  a matrix over the head's own labels  Kull et al. 2019, section 3
    stack      a matrix over the labels of all heads of its roles and dimension (Wolpert 1992)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stream_app.inference.bundles.adaptations import Recalibration
from stream_app.inference.bundles.recalibration import EPSILON, log_inputs, softmax

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
PRECISIONS: Final = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
"""Precisions of the prior, the strongest first; a standard deviation of 0.1 to 1.8 log-odds."""
DIGITS: Final = 6
MAX_STEPS: Final = 50
MAX_HALVINGS: Final = 30
TOLERANCE: Final = 1e-8
LARGEST: Final = 20.0
"""Bound of every parameter, in log-odds."""


class Family(Enum):
    """Which parameters are free; each includes those before it."""

    SHIFT = "shift"
    SCALE = "scale"
    DIRICHLET = "dirichlet"
    STACK = "stack"


class Candidate(NamedTuple):
    """A family with the precision of its prior."""

    family: Family
    precision: float

    @property
    def words(self) -> str:
        """Words for cards.

        >>> Candidate(Family.SHIFT, 3.0).words
        'shift, prior precision 3'
        """
        return f"{self.family.value}, prior precision {self.precision:g}"


@dataclass(frozen=True, slots=True)
class HeadData:
    """Judged turns of one head, a row each.

    ``probabilities``: [n, labels] by input head, ``head`` among them, as the bundle gave them.
    ``target``: [n, labels], shares of the raters that chose each label, summing to 1.
    ``weight``: [n], above 0. ``group``: [n], the counsellor. ``disputed``: [n], whether the row
    comes from a dispute, so that it is fitted on and never evaluated on. ``blind``: [n], whether
    a rating was given without the score in view. ``families``: those to choose from.
    """

    head: str
    labels: tuple[str, ...]
    ordered: bool
    offsets: tuple[float, ...]
    probabilities: dict[str, Floats]
    target: Floats
    weight: Floats
    group: Ints
    disputed: npt.NDArray[np.bool_]
    blind: npt.NDArray[np.bool_]
    families: tuple[Family, ...] = tuple(Family)

    def __len__(self) -> int:
        return len(self.target)

    @property
    def candidates(self) -> list[Candidate]:
        """All families at all precisions."""
        return [Candidate(family, one) for family in self.families for one in PRECISIONS]

    @property
    def own(self) -> Floats:
        """The head's own probabilities [n, labels]."""
        return self.probabilities[self.head]

    def rows(self, chosen: npt.NDArray[np.bool_] | Ints) -> "HeadData":
        """Some of the rows."""
        return replace(
            self,
            probabilities={name: values[chosen] for name, values in self.probabilities.items()},
            target=self.target[chosen],
            weight=self.weight[chosen],
            group=self.group[chosen],
            disputed=self.disputed[chosen],
            blind=self.blind[chosen],
        )

    def weighted(self, disputes: float) -> "HeadData":
        """The same with this weight of the disputed rows; 0 leaves them out."""
        if disputes == 0.0:
            return self.rows(~self.disputed)
        return replace(self, weight=np.where(self.disputed, disputes, self.weight))


class Fit(NamedTuple):
    """Parameters: ``weights`` [labels, all inputs], ``intercept`` [labels]; ``inputs`` by name."""

    inputs: tuple[str, ...]
    weights: Floats
    intercept: Floats

    def predict(self, data: HeadData) -> Floats:
        """Probabilities [n, labels]."""
        logits = np.log(data.own + EPSILON) + self.intercept
        if self.inputs:
            logits = logits + _stacked(data, self.inputs) @ self.weights.T
        return softmax(logits)

    def recalibration(self, data: HeadData) -> Recalibration:
        """The recalibration as a manifest has it."""
        weights: dict[str, list[list[float]]] = {}
        first = 0
        for name in self.inputs:
            last = first + data.probabilities[name].shape[1]
            weights[name] = np.round(self.weights[:, first:last], DIGITS).tolist()
            first = last
        return Recalibration(np.round(self.intercept, DIGITS).tolist(), weights)


def log_loss(probabilities: Floats, target: Floats) -> Floats:
    """Cross-entropy of each row [n], in nats."""
    return np.asarray(-(target * np.log(probabilities + EPSILON)).sum(axis=-1))


def path(data: HeadData, family: Family, precisions: Sequence[float] = PRECISIONS) -> list[Fit]:
    """Fit a family at each precision, in their order; each fit starts from the one before.

    The objective is convex, so a start changes the time alone.
    """
    inputs = _inputs(data, family)
    read = _stacked(data, inputs) if inputs else np.zeros((len(data), 0))
    centre = read.mean(axis=0) if len(data) else np.zeros(read.shape[1])
    problem = _Problem(data, family, read - centre)
    found: list[Fit] = []
    start = np.zeros(problem.size)
    for precision in precisions:
        start = problem.solve(precision, start)
        weights, intercept = problem.unpack(start)
        found.append(Fit(inputs, weights, intercept - weights @ centre))
    return found


def fit(data: HeadData, candidate: Candidate) -> Fit:
    """Fit one candidate."""
    return path(data, candidate.family, (candidate.precision,))[0]


def unchanged(data: HeadData) -> Fit:
    """The bundle as it is."""
    labels = len(data.labels)
    return Fit((), np.zeros((labels, 0)), np.zeros(labels))


def _inputs(data: HeadData, family: Family) -> tuple[str, ...]:
    if family is Family.SHIFT:
        return ()
    return tuple(data.probabilities) if family is Family.STACK else (data.head,)


def _stacked(data: HeadData, inputs: Sequence[str]) -> Floats:
    return np.concatenate([log_inputs(data.probabilities[name]) for name in inputs], axis=1)


class _Problem:
    """Penalised log loss of a family; parameters are the weights' free part, then intercepts."""

    def __init__(self, data: HeadData, family: Family, read: Floats) -> None:
        self._labels = len(data.labels)
        self._scale = family is Family.SCALE
        self._read = read
        self._base = np.log(data.own + EPSILON)
        self._target = data.target
        self._weight = data.weight
        self._columns = read.shape[1]
        self._free = 1 if self._scale else self._labels * self._columns
        self.size = self._free + self._labels

    def unpack(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Weights [labels, inputs] and intercept [labels]."""
        free, intercept = parameters[: self._free], parameters[self._free :]
        if self._scale:
            return free[0] * np.eye(self._labels), intercept
        return free.reshape(self._labels, self._columns), intercept

    def solve(self, precision: float, start: Floats) -> Floats:
        """The parameters with the lowest loss, by Newton's method with halved steps."""
        found, loss = start, self._loss(start, precision)
        for _ in range(MAX_STEPS):
            gradient, hessian = self._slopes(found, precision)
            step = np.linalg.solve(hessian, gradient)
            if float(gradient @ step) < TOLERANCE * max(1.0, loss):
                break
            size = 1.0
            for _ in range(MAX_HALVINGS):
                after = np.clip(found - size * step, -LARGEST, LARGEST)
                value = self._loss(after, precision)
                if value < loss:
                    break
                size /= 2.0
            else:
                break
            found, loss = after, value
        return found

    def _predicted(self, parameters: Floats) -> Floats:
        weights, intercept = self.unpack(parameters)
        return softmax(self._base + self._read @ weights.T + intercept)

    def _loss(self, parameters: Floats, precision: float) -> float:
        given = log_loss(self._predicted(parameters), self._target)
        return float(self._weight @ given) + precision * float(parameters @ parameters) / 2.0

    def _slopes(self, parameters: Floats, precision: float) -> tuple[Floats, Floats]:
        """Gradient and Hessian of the loss."""
        p = self._predicted(parameters)
        gap = (p - self._target) * self._weight[:, None]
        gradient = np.concatenate([(gap.T @ self._read).ravel(), gap.sum(axis=0)])
        read = np.column_stack([self._read, np.ones(len(p))])
        labels, columns = self._labels, self._columns
        whole = np.empty((labels, columns + 1, labels, columns + 1))
        for one in range(labels):
            for other in range(one, labels):
                curve = self._weight * p[:, one] * ((one == other) - p[:, other])
                block = (read * curve[:, None]).T @ read
                whole[one, :, other, :] = block
                whole[other, :, one, :] = block.T
        hessian = np.block(
            [
                [_flat(whole[:, :-1, :, :-1]), _flat(whole[:, :-1, :, -1:])],
                [_flat(whole[:, -1:, :, :-1]), _flat(whole[:, -1:, :, -1:])],
            ]
        )
        if self._scale:
            to_free = np.zeros((labels * columns + labels, self.size))
            to_free[: labels * columns, 0] = np.eye(labels).ravel()
            to_free[labels * columns :, 1:] = np.eye(labels)
            gradient, hessian = to_free.T @ gradient, to_free.T @ hessian @ to_free
        return gradient + precision * parameters, hessian + precision * np.eye(self.size)


def _flat(block: Floats) -> Floats:
    """[labels, columns, labels, columns] as a matrix."""
    labels, rows, _, columns = block.shape
    return block.reshape(labels * rows, labels * columns)
