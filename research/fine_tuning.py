"""Fine-tuning of pretrained encoders with new output layers, as all trained methods do it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from models.fit.optimisation import Optimisation
from models.model.batches import seeded_random
from research.resumable import optimise

Item = TypeVar("Item")
ALIKE = 16
"""Items whose lengths differ by fewer tokens count as equally long."""


@dataclass(frozen=True)
class Hyperparameters:
    """Of a training; rates as in `models.fit.train`.

    Published rates, 2e-5 and 5e-6, were chosen for encoders of 125 M and 340 M parameters; smaller
    ones need larger rates. `frozen_layers` counts each encoder's lowest layers; with them, the word
    embeddings are frozen. `batch`: items a step.
    """

    epochs: int
    batch: int = 32
    encoder_rate: float = 8e-5
    head_rate: float = 1e-3
    frozen_layers: int = 2
    warm_up: float = 0.06
    seed: int = 17
    bf16: bool = True


def fine_tune(
    model: nn.Module,
    encoders: Sequence[nn.Module],
    items: Sequence[Item],
    length: Callable[[Item], int],
    loss_of: Callable[[list[Item]], Tensor],
    chosen: Hyperparameters,
    method: str,
    checkpoint: Path | None = None,
) -> None:
    """Train in place; an interrupted training continues from its checkpoint.

    Args:
        model: all that learns.
        encoders: its pretrained parts, which learn at the encoder's rate.
        items: what an epoch goes through.
        length: tokens of an item.
        loss_of: the loss of a step.
        chosen: the hyperparameters.
        method: seeds the order of the batches.
        checkpoint: file of the state.
    """
    for encoder in encoders:
        freeze(encoder, chosen.frozen_layers)
    pretrained = {id(p) for encoder in encoders for p in encoder.parameters()}
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if id(p) in pretrained], "lr": chosen.encoder_rate},
        {"params": [p for p in parameters if id(p) not in pretrained], "lr": chosen.head_rate},
    ]
    optimiser = torch.optim.AdamW(groups, weight_decay=0.01)
    steps = chosen.epochs * math.ceil(len(items) / chosen.batch)
    optimisation = Optimisation(model, optimiser, steps, chosen.warm_up)

    def batches(epoch: int) -> Iterable[list[Item]]:
        return shuffled(items, chosen.batch, length, chosen.seed, method, epoch)

    model.train()
    optimise(optimisation, batches, loss_of, chosen.seed, checkpoint)
    model.eval()


def precision(chosen: Hyperparameters) -> torch.autocast:
    """In which the model runs, not its loss."""
    return torch.autocast("cpu", torch.bfloat16, enabled=chosen.bf16)


def freeze(encoder: nn.Module, layers: int) -> None:
    """Freeze the lowest `layers` layers and, with them, the word embeddings.

    Raises:
        ValueError: the encoder's layers are not laid out as BERT's.
    """
    if not layers:
        return
    found: Any = getattr(getattr(encoder, "encoder", None), "layer", None)
    if found is None:
        message = (
            f"layers of {type(encoder).__name__} cannot be frozen one by one: use frozen_layers=0"
        )
        raise ValueError(message)
    for part in (encoder.embeddings, *found[:layers]):
        part.requires_grad_(requires_grad=False)


def parameters_of(model: nn.Module) -> tuple[int, int]:
    """Number of parameters, and of those in training."""
    sizes = [(p.numel(), p.requires_grad) for p in model.parameters()]
    return sum(size for size, _ in sizes), sum(size for size, trained in sizes if trained)


def shuffled(
    items: Sequence[Item], size: int, length: Callable[[Item], int], *parts: object
) -> Iterator[list[Item]]:
    """Batches of similar lengths in random order, determined by `parts`."""
    chance = seeded_random(*parts)
    order = chance.sample(list(items), len(items))
    order.sort(key=lambda item: length(item) // ALIKE)
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    chance.shuffle(batches)
    yield from batches


def by_length(
    items: Sequence[Item], size: int, length: Callable[[Item], int]
) -> Iterator[tuple[list[int], list[Item]]]:
    """Batches by rising length with the positions of their items, for prediction."""
    order = sorted(range(len(items)), key=lambda position: length(items[position]))
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        yield chosen, [items[position] for position in chosen]
