"""Training a window classifier and predicting with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from models.data.corpora import Conversation
from models.model.encoder import pretrained_tokenizer
from models.model.losses import HeadLoss
from research.fine_tuning import Hyperparameters, by_length, fine_tune, precision
from research.resumable import checkpoint_of
from research.window_classifier.design import Design
from research.window_classifier.model import WindowClassifier, build, counts_of
from research.window_classifier.windows import Example, Windows, collate

Ints = NDArray[np.int64]


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
    losses = [
        HeadLoss(design.loss, counts) for counts in counts_of([each.labels for each in examples])
    ]

    def loss(members: list[Example]) -> Tensor:
        batch = collate(members)
        with precision(chosen):
            logits = model(batch)
        each = [
            own(scores.float(), labels)
            for own, scores, labels in zip(losses, logits, batch.labels, strict=True)
        ]
        return torch.stack(each).mean()

    encoders = [model.encoder]
    fine_tune(model, encoders, examples, tokens_of, loss, chosen, "window_classifier", checkpoint)


def fit(
    conversations: Sequence[Conversation],
    design: Design,
    chosen: Hyperparameters,
    encoder: str | None = None,
    checkpoints: Path | None = None,
) -> Fitted:
    """Train on conversations from a pretrained encoder (a folder or hub name; None: packaged).

    An interrupted training is continued from its checkpoint in the folder `checkpoints`.
    """
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
    for positions, members in by_length(examples, size, tokens_of):
        outputs = model(collate(members))
        found[positions] = torch.stack([head.argmax(-1) for head in outputs], dim=1).numpy()
    return found


def tokens_of(example: Example) -> int:
    """Tokens of a window."""
    return len(example.ids)
