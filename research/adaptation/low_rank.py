"""A low-rank update of one head's task network, on the vectors of the frozen encoder.

LoRA (Hu et al. 2022, section 4.1) of the first layer, which reads the fused vectors, and an update
of the small second layer:

    hidden = gelu(x (W1 + A B) + b1),  logits = hidden (W2 + D2) + b2 + d2

Once learnt, it is added to the weights, so that the graph keeps its form and its cost, and every
other head its weights. `A` starts with the directions in which the loss falls fastest (the largest
singular vectors of its gradient, after Wang et al. 2024, LoRA-GA) and `B` with zeros, so that a fit
needs no random numbers. All parameters have a normal prior around the start.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from research.adaptation.task_inputs import Task, TaskInputs, layers_of
from stream_app.adaptation.choosing import RECALIBRATION, Method
from stream_app.adaptation.fitting import Floats, HeadData, Ints
from stream_app.inference.bundles.recalibration import softmax

RANK: Final = 4
PRECISIONS: Final = (3000.0, 700.0)
"""Precisions of the prior of `A` and `B`, the strongest first: the fused vectors are long."""
SECOND_LAYER: Final = 0.05
"""Precision of the prior of `D2`, as a share of it."""
SHIFT: Final = 1.0
"""Precision of the prior of `d2`, as of recalibrations."""
STEPS: Final = 30
"""Iterations of L-BFGS."""


class LowRank(NamedTuple):
    """A candidate; `precision` of the prior."""

    rank: int
    precision: float

    @property
    def words(self) -> str:
        """As in cards.

        >>> LowRank(4, 700.0).words
        'low-rank update of rank 4, prior precision 700'
        """
        return f"low-rank update of rank {self.rank}, prior precision {self.precision:g}"


@dataclass(frozen=True, eq=False, kw_only=True)
class VectorData(HeadData):
    """Judged turns with the inputs of the head's task network."""

    task: Task
    inputs: TaskInputs = field(repr=False)

    def rows(self, chosen: NDArray[np.bool_] | Ints) -> VectorData:
        """Some of the rows."""
        some = torch.from_numpy(np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen)
        inputs = TaskInputs(*(part[some] for part in self.inputs))
        return replace(_with_vectors(super().rows(chosen)), inputs=inputs)


@dataclass(frozen=True, eq=False)
class Learnt:
    """A task with the network that replaces its own."""

    task: Task
    network: nn.Module

    def predict(self, data: HeadData) -> Floats:
        """Probabilities [n, labels]."""
        scaled = self.logits(_with_vectors(data).inputs) / self.task.temperature
        return softmax(scaled.astype(np.float64) + self.task.bias.numpy())

    @torch.inference_mode()
    def logits(self, inputs: TaskInputs) -> NDArray[np.float32]:
        """Logits [n, labels] as the head graph has them."""
        found = self.task.read(*(self.network(part) for part in inputs))
        return np.asarray(found.numpy())


class Update(nn.Module):
    """The parameters of an update: no change at the start."""

    def __init__(self, task: Task, directions: Tensor) -> None:
        super().__init__()
        first, second = task.layers
        self.task = task
        self.start = directions
        self.down = nn.Parameter(directions.clone())
        self.up = nn.Parameter(torch.zeros(directions.shape[1], first.out_features))
        self.weight = nn.Parameter(torch.zeros_like(second.weight))
        self.bias = nn.Parameter(torch.zeros_like(second.bias))

    def penalty(self, precision: float) -> Tensor:
        """Minus the log density of the prior, up to a constant."""
        first = (self.down - self.start).square().sum() + self.up.square().sum()
        second = self.weight.square().sum()
        shift = self.bias.square().sum()
        return (precision * (first + SECOND_LAYER * second) + SHIFT * shift) / 2

    def logits(self, vectors: Tensor, hidden: Tensor) -> Tensor:
        """Logits [n, labels]; `hidden`: the first layer's outputs before the update."""
        _, second = self.task.layers
        states = nn.functional.gelu(hidden + vectors @ self.down @ self.up)
        return nn.functional.linear(states, second.weight + self.weight, second.bias + self.bias)

    def network(self) -> nn.Module:
        """The task network with the update added to its weights."""
        found = copy.deepcopy(self.task.network)
        first, second = layers_of(found)
        with torch.no_grad():
            first.weight.add_((self.down @ self.up).T)
            second.weight.add_(self.weight)
            second.bias.add_(self.bias)
        return found


def fit(data: VectorData, candidate: LowRank) -> Learnt:
    """The update with the lowest penalised log loss."""
    first, _ = data.task.layers
    hidden = [first(part) for part in data.inputs]
    target, weight = (torch.from_numpy(part).float() for part in (data.target, data.weight))
    update = Update(data.task, _directions(data, target, weight, candidate.rank))
    optimiser = torch.optim.LBFGS(
        update.parameters(), max_iter=STEPS, line_search_fn="strong_wolfe"
    )

    def step() -> Tensor:
        optimiser.zero_grad()
        logits = map(update.logits, data.inputs, hidden)
        loss = _misfit(data.task.log_probabilities(*logits), target, weight)
        loss = loss + update.penalty(candidate.precision)
        loss.backward()
        return loss

    optimiser.step(step)
    return Learnt(data.task, update.network())


def _directions(data: VectorData, target: Tensor, weight: Tensor, rank: int) -> Tensor:
    """Unit directions [fused, rank] in which a change of the first layer helps most."""
    first, second = data.task.layers
    weights = first.weight.clone().requires_grad_()
    logits = [
        second(nn.functional.gelu(nn.functional.linear(part, weights, first.bias)))
        for part in data.inputs
    ]
    loss = _misfit(data.task.log_probabilities(*logits), target, weight)
    [gradient] = torch.autograd.grad(loss, weights)
    directions: Tensor = torch.linalg.svd(gradient, full_matrices=False).Vh[:rank].T
    return directions.contiguous()


def _misfit(log: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    found: Tensor = -(target * log).sum(-1) @ weight
    return found


def _groups(data: HeadData) -> list[list[LowRank]]:
    del data  # the same candidates for all heads
    return [[LowRank(RANK, precision)] for precision in PRECISIONS]


def _fit(data: HeadData, candidates: Sequence[LowRank]) -> list[Learnt]:
    return [fit(_with_vectors(data), one) for one in candidates]


def _unchanged(data: HeadData) -> Learnt:
    task = _with_vectors(data).task
    return Learnt(task, task.network)


def _with_vectors(data: HeadData) -> VectorData:
    if not isinstance(data, VectorData):
        raise TypeError("a low-rank update needs the turns' vectors")
    return data


LOW_RANK: Final = Method(_groups, _fit, _unchanged, simpler=RECALIBRATION)
"""Has to predict better than the best recalibration, too, which changes a few numbers."""
