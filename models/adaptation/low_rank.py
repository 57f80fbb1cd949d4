"""A low-rank update of one head's task network, on the vectors of the frozen encoder.

LoRA (Hu et al. 2022, section 4.1) of the first layer, which reads the fused vectors, and an update
of the small second layer:

    hidden = gelu(x (W1 + A B) + b1),  logits = hidden (W2 + D2) + b2 + d2

The update is added to the weights when it has been learnt, so that the graph keeps its form and
its cost, and every other head its weights. `A` starts with the directions in which the loss falls
fastest (the largest singular vectors of its gradient; Wang et al. 2024, LoRA-GA) and `B` with
zeros, so that a fit needs no random numbers. All parameters have a normal prior around the start.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.heads import tempered
from stream_app.adaptation import crossvalidation, thresholds
from stream_app.adaptation.crossvalidation import Choice, Fitted
from stream_app.adaptation.fitting import (
    Floats,
    HeadData,
    Ints,
    log_loss,
    path,
    unchanged,
)
from stream_app.inference.recalibration import EPSILON

RANK: Final = 4
PRECISIONS: Final = (100.0, 10.0, 1.0)
"""Precisions of the prior, the strongest first."""
STEPS: Final = 40
"""Iterations of L-BFGS."""


class LowRank(NamedTuple):
    """A candidate; `precision` of the prior."""

    rank: int
    precision: float

    @property
    def words(self) -> str:
        """As in cards.

        >>> LowRank(4, 10.0).words
        'low-rank update of rank 4, prior precision 10'
        """
        return f"low-rank update of rank {self.rank}, prior precision {self.precision:g}"


CANDIDATES: Final = tuple(LowRank(RANK, precision) for precision in PRECISIONS)


@dataclass(frozen=True, eq=False)
class Task:
    """The task network of a head with the head's calibration, as the bundle has them."""

    network: nn.Sequential
    tempered: bool
    temperature: float
    bias: Tensor

    @property
    def layers(self) -> tuple[nn.Linear, nn.Linear]:
        """The two layers."""
        first, second = (layer for layer in self.network if isinstance(layer, nn.Linear))
        return first, second


@dataclass(frozen=True, eq=False)
class VectorData(HeadData):
    """Judged turns with the inputs of the task network, [n, fused] in context and alone."""

    task: Task = field(kw_only=True)
    fused: Tensor = field(kw_only=True)
    alone: Tensor = field(kw_only=True)

    def rows(self, chosen: NDArray[np.bool_] | Ints) -> VectorData:
        """Some of the rows."""
        some = torch.from_numpy(np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen)
        found = super().rows(chosen)
        assert isinstance(found, VectorData)  # noqa: S101 (`replace` keeps the class)
        return replace(found, fused=self.fused[some], alone=self.alone[some])


class Update(nn.Module):
    """The parameters of an update; all of `deltas` are zero at the start."""

    def __init__(self, task: Task, directions: Tensor) -> None:
        super().__init__()
        first, second = task.layers
        self.task = task
        self.start = directions
        self.down = nn.Parameter(directions.clone())
        self.up = nn.Parameter(torch.zeros(directions.shape[1], first.out_features))
        self.weight = nn.Parameter(torch.zeros_like(second.weight))
        self.bias = nn.Parameter(torch.zeros_like(second.bias))

    def penalty(self) -> Tensor:
        """Squared distance from the start."""
        away = (self.down - self.start, self.up, self.weight, self.bias)
        return torch.stack([part.square().sum() for part in away]).sum()

    def logits(self, vectors: Tensor, hidden: Tensor) -> Tensor:
        """Logits [n, labels]; `hidden`: the first layer's outputs before the update."""
        _, second = self.task.layers
        states = nn.functional.gelu(hidden + vectors @ self.down @ self.up)
        return nn.functional.linear(states, second.weight + self.weight, second.bias + self.bias)

    def network(self) -> nn.Sequential:
        """The task network with the update added to its weights."""
        found = copy.deepcopy(self.task.network)
        first, second = (layer for layer in found if isinstance(layer, nn.Linear))
        with torch.no_grad():
            first.weight += (self.down @ self.up).T
            second.weight += self.weight
            second.bias += self.bias
        return found


@dataclass(frozen=True, eq=False)
class Learnt:
    """A task network after its update, or as it is."""

    task: Task
    network: nn.Sequential

    @torch.inference_mode()
    def predict(self, data: HeadData) -> Floats:
        """Probabilities [n, labels]."""
        assert isinstance(data, VectorData)  # noqa: S101 (other data has no vectors)
        log = _log_probabilities(self.task, self.network(data.fused), self.network(data.alone))
        return np.asarray(log.double().softmax(-1).numpy())


def learn(data: HeadData) -> Fitted[Learnt]:
    """Choose with the inner folds, and fit on all rows.

    An update is chosen only if it predicts ratings better than the best recalibration of the head
    (`rapport adapt`, which changes a few numbers) by more than one standard error.
    """
    assert isinstance(data, VectorData)  # noqa: S101
    choice = choose(data)
    if choice.candidate is None:
        return Fitted(choice, Learnt(data.task, data.task.network), data.offsets)
    found = fit(data.weighted(choice.dispute_weight), choice.candidate)
    rated = data.rows(~data.disputed)
    offsets = thresholds.fit_offsets(
        found.predict(rated), rated.target.argmax(axis=-1), data.offsets, ordered=data.ordered
    )
    return Fitted(choice, found, offsets)
