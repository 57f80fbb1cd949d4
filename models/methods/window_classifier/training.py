"""Training a window classifier and predicting with it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from models.data.corpora import Conversation
from models.encoder import pretrained_tokenizer
from models.losses import HeadLoss
from models.methods.resumable import checkpoint_of, optimise
from models.methods.window_classifier.design import Design
from models.methods.window_classifier.model import (
    WindowClassifier,
    build,
    counts_of,
    freeze,
)
from models.methods.window_classifier.windows import (
    Example,
    Windows,
    by_length,
    collate,
    shuffled,
)
from models.optimisation import Optimisation

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Hyperparameters:
    """Of the training; rates as in `models.train`.

    The published rate, 5e-6 for up to 30 epochs, was chosen for encoders of 340 M parameters and
    more. `frozen_layers` counts the lowest layers; with them, the word embeddings are frozen.
    """

    epochs: int = 2
    windows: int = 32
    encoder_rate: float = 8e-5
    head_rate: float = 1e-3
    frozen_layers: int = 2
    warm_up: float = 0.06
    seed: int = 17
    bf16: bool = True


@dataclass(frozen=True)
class Fitted:
    """A trained classifier."""

    model: WindowClassifier
    windows: Windows

    def read(self, examples: Sequence[Example], size: int = 32) -> Ints:
        """The most probable label of each head, [examples, heads]."""
        return predicted(self.model, examples, size)


def train(
    model: WindowClassifier,
    examples: list[Example],
    design: Design,
    chosen: Hyperparameters,
    checkpoint: Path | None = None,
) -> None:
    """Train in place; an interrupted training continues from its checkpoint."""
    freeze(model, chosen.frozen_layers)
    losses = [
        HeadLoss(design.loss, counts) for counts in counts_of([each.labels for each in examples])
    ]
    body = [p for p in model.encoder.parameters() if p.requires_grad]
    groups = [
        {"params": body, "lr": chosen.encoder_rate},
        {"params": list(model.classifier.parameters()), "lr": chosen.head_rate},
    ]
    optimiser = torch.optim.AdamW(groups, weight_decay=0.01)
    steps = chosen.epochs * math.ceil(len(examples) / chosen.windows)
    optimisation = Optimisation(model, optimiser, steps, chosen.warm_up)

    def batches(epoch: int) -> Iterator[list[Example]]:
        return shuffled(examples, chosen.windows, chosen.seed, "window_classifier", epoch)

    def loss(members: list[Example]) -> Tensor:
        batch = collate(members)
        with torch.autocast("cpu", torch.bfloat16, enabled=chosen.bf16):
            logits = model(batch)
        each = [
            own(scores.float(), labels)
            for own, scores, labels in zip(losses, logits, batch.labels, strict=True)
        ]
        return torch.stack(each).mean()

    model.train()
    optimise(optimisation, batches, loss, chosen.seed, checkpoint)
    model.eval()


def fit(
    conversations: Sequence[Conversation],
    design: Design,
    chosen: Hyperparameters | None = None,
    encoder: str | None = None,
    checkpoints: Path | None = None,
) -> Fitted:
    """Train on conversations from a pretrained encoder (a folder or hub name; None: packaged).

    An interrupted training is continued from its checkpoint in the folder `checkpoints`.
    """
    chosen = chosen or Hyperparameters()
    tokenizer: Tokenizer = pretrained_tokenizer(encoder)
    windows = Windows(tokenizer, design)
    examples = windows.examples(conversations)
    torch.manual_seed(chosen.seed)
    model = build(design.heads, encoder)
    checkpoint = checkpoints and checkpoint_of(
        "window_classifier", design, chosen, encoder, examples, folder=checkpoints
    )
    train(model, examples, design, chosen, checkpoint)
    return Fitted(model, windows)


@torch.inference_mode()
def predicted(model: WindowClassifier, examples: Sequence[Example], size: int) -> Ints:
    """The most probable label of each head, [examples, heads]."""
    found = np.zeros((len(examples), len(model.sizes)), np.int64)
    for positions, batch in by_length(examples, size):
        found[positions] = torch.stack([head.argmax(-1) for head in model(batch)], dim=1).numpy()
    return found
