"""Bottleneck adapters on frozen sentence vectors, stacked (Pfeiffer et al. 2020; section 5).

    vectors of context and text ── source adapter (frozen) ── target adapter ── output
                                   h + up(relu(down(h)))      h + up(relu(down(h)))

An adapter here follows the encoder instead of each of its layers, so that the encoder runs once for
all tasks; `research.transfer.layers` has adapters and LoRA inside the encoder. A target
adapter alone is the baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from research.sentence_vectors import SentenceEncoder
from research.transfer.items import Data, Part

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Training:
    """Hyperparameters, the same for all tasks; `bottleneck` is the adapter's inner size."""

    epochs: int = 12
    batch: int = 64
    rate: float = 1e-3
    bottleneck: int = 48
    seed: int = 17


class Adapter(nn.Module):
    """h + up(relu(down(h))); an untrained adapter changes nothing."""

    def __init__(self, size: int, bottleneck: int) -> None:
        super().__init__()
        self.down = nn.Linear(size, bottleneck)
        self.up = nn.Linear(bottleneck, size)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, states: Tensor) -> Tensor:
        """States [..., size]."""
        found: Tensor = states + self.up(self.down(states).relu())
        return found


class Stack(nn.Module):
    """Adapters on top of each other and an output of `classes` logits (0: one rating)."""

    def __init__(self, size: int, classes: int, chosen: Training, below: Adapter | None) -> None:
        super().__init__()
        self.below = below
        if below is not None:
            for parameter in below.parameters():
                parameter.requires_grad = False
        self.adapter = Adapter(size, chosen.bottleneck)
        self.dropout = nn.Dropout(0.1)
        self.output = nn.Linear(size, max(classes, 1))
        self.classes = classes

    def forward(self, features: Tensor) -> Tensor:
        """Logits [n, classes], or ratings [n, 1] in standard units."""
        states = features if self.below is None else self.below(features)
        found: Tensor = self.output(self.dropout(self.adapter(states)))
        return found


@dataclass(frozen=True)
class Vectors:
    """A task's inputs [n, 2 * hidden] and labels, scaled to zero mean and unit variance ratings."""

    train: Tensor
    train_labels: Tensor
    test: Tensor
    test_labels: NDArray[Any]
    classes: int


def vectors_of(data: Data, encode: SentenceEncoder) -> Vectors:
    """Frozen vectors of context and text, each scaled to unit variance; no context is zero."""

    def inputs(part: Part) -> Tensor:
        texts = encode(part.texts)
        contexts = encode(part.contexts)
        contexts = contexts * np.array([[bool(text.strip())] for text in part.contexts])
        joined = np.concatenate([contexts, texts], axis=1) * texts.shape[1] ** 0.5
        return torch.tensor(joined, dtype=torch.float32)

    labels = data.train.labels
    if not data.classes:
        labels = (labels - labels.mean()) / (labels.std() or 1.0)
    kind = torch.int64 if data.classes else torch.float32
    return Vectors(
        inputs(data.train),
        torch.tensor(labels, dtype=kind),
        inputs(data.test),
        data.test.labels,
        data.classes,
    )


def loss_of(outputs: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Cross-entropy, or squared error of a rating."""
    if classes:
        return nn.functional.cross_entropy(outputs, labels)
    return nn.functional.mse_loss(outputs[:, 0], labels)


def fit(
    given: Vectors, chosen: Training, below: Adapter | None = None, share: float = 1.0
) -> Stack:
    """Train a new adapter and output on the first `share` of the training items."""
    torch.manual_seed(chosen.seed)
    stack = Stack(given.train.shape[1], given.classes, chosen, below)
    trained = [parameter for parameter in stack.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=chosen.rate, weight_decay=0.01)
    count = max(1, round(share * len(given.train)))
    stack.train()
    for _ in range(chosen.epochs):
        for rows in torch.randperm(count).split(chosen.batch):
            loss = loss_of(stack(given.train[rows]), given.train_labels[rows], given.classes)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
    return stack.eval()


@torch.inference_mode()
def predicted(stack: Stack, given: Vectors) -> NDArray[Any]:
    """Classes int64 [n], or ratings float [n] in standard units, of the test items."""
    outputs = stack(given.test)
    found: NDArray[Any] = (outputs.argmax(-1) if given.classes else outputs[:, 0]).numpy()
    return found


def task_embedding(stack: Stack, given: Vectors, batch: int = 16) -> dict[str, Floats]:
    """Diagonal of the empirical Fisher information of each part of the adapter (Vu et al. 2020).

    Squared gradients of the loss, averaged over batches of the training items.
    """
    sums = {name: torch.zeros_like(p) for name, p in stack.adapter.named_parameters()}
    pieces = torch.arange(len(given.train)).split(batch)
    for rows in pieces:
        stack.zero_grad(set_to_none=True)
        loss_of(stack(given.train[rows]), given.train_labels[rows], given.classes).backward()
        for name, parameter in stack.adapter.named_parameters():
            if parameter.grad is not None:
                sums[name] += parameter.grad**2
    stack.zero_grad(set_to_none=True)
    return {name: (value / len(pieces)).flatten().numpy() for name, value in sums.items()}
