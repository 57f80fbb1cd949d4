"""A head's task network as a bundle has it, and its inputs for turns with their windows."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from models.labels import HEADS_BY_NAME
from models.model.heads import ContextHead, tempered
from models.model.onnx_model import HEAD_INPUTS
from stream_app.inference.bundles.bundle import HeadSpec
from stream_app.inference.head import Feeds

AT_A_TIME = 512


class TaskInputs(NamedTuple):
    """Features of turns [n, fused], in their context and without it."""

    fused: Tensor
    alone: Tensor


@dataclass(frozen=True, eq=False)
class Task:
    """A task network with the head's calibration, as the bundle has them.

    `bias` [labels]; `tempered`: whether the logits are combined with the context-free ones.
    """

    network: nn.Module
    tempered: bool
    temperature: float
    bias: Tensor

    @property
    def layers(self) -> tuple[nn.Linear, nn.Linear]:
        """The two layers."""
        first, second = layers_of(self.network)
        return first, second

    def read(self, in_context: Tensor, alone: Tensor) -> Tensor:
        """The head's logits [n, labels] from those of the task network."""
        return tempered(in_context, alone) if self.tempered else in_context

    def log_probabilities(self, in_context: Tensor, alone: Tensor) -> Tensor:
        """Log probabilities [n, labels] from logits of the task network."""
        logits = self.read(in_context, alone)
        return (logits / self.temperature + self.bias).log_softmax(-1)


def layers_of(network: nn.Module) -> list[nn.Linear]:
    """The linear layers of a task network."""
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]


def task_of(head: ContextHead, spec: HeadSpec) -> Task:
    """The task of one head of a bundle; its weights are constants."""
    network = copy.deepcopy(head.tasks[spec.name]).eval().requires_grad_(requires_grad=False)
    bias = torch.tensor(spec.bias or [0.0] * len(spec.labels))
    return Task(network, HEADS_BY_NAME[spec.name].tempered, spec.temperature, bias)


@torch.inference_mode()
def task_inputs(head: ContextHead, feeds: Feeds) -> TaskInputs:
    """The head's fusion of turns and neighbours, given as inputs of its graph."""
    fused, alone = [], []
    for first in range(0, len(feeds["target"]), AT_A_TIME):
        window = [torch.from_numpy(feeds[name][first : first + AT_A_TIME]) for name in HEAD_INPUTS]
        fused.append(head.fuse(*window))
        alone.append(head.alone(window[0]))
    return TaskInputs(torch.cat(fused).clone(), torch.cat(alone).clone())
