"""Training a bi-encoder and predicting with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from models.data.corpora import Conversation
from models.labels import RATIONALE_ORDER
from models.model.encoder import pretrained_tokenizer
from models.model.losses import rationale_loss
from research.bi_encoder.batches import Batch, Pair, collate, pairs_of
from research.bi_encoder.design import Design
from research.bi_encoder.model import BiEncoder, build
from research.fine_tuning import Hyperparameters, by_length, fine_tune, precision
from research.resumable import checkpoint_of

Ints = NDArray[np.int64]
MECHANISMS = len(RATIONALE_ORDER)


DEFAULTS = Hyperparameters(epochs=4)
"""Epochs and batches as published."""


@dataclass(frozen=True)
class Reading:
    """Levels [n, 3] and each response's rationale mask [tokens, 3], without special tokens."""

    levels: Ints
    masks: list[Ints]


@dataclass(frozen=True)
class Fitted:
    """One model for all mechanisms, or one for each in the order of `RATIONALE_ORDER`."""

    design: Design
    models: list[BiEncoder]
    tokenizer: Tokenizer

    def read(self, conversations: list[Conversation], size: int = 32) -> Reading:
        """Score the second turn of each conversation."""
        pairs = pairs_of(conversations, self.tokenizer)
        parts = [_predicted(model, pairs, self.design, size) for model in self.models]
        masks = [
            np.concatenate(rows, axis=1) for rows in zip(*(p.masks for p in parts), strict=True)
        ]
        return Reading(np.concatenate([part.levels for part in parts], axis=1), masks)


def loss_of(
    levels: Tensor, rationales: Tensor, batch: Batch, columns: slice, weight: float
) -> Tensor:
    """L = lambda_EI L_EI + lambda_RE L_RE with lambda_EI = 1 (section 5.2).

    A mean over the mechanisms in `columns`; both terms are cross-entropies.
    """
    gold = batch.levels[:, columns]
    loss = nn.functional.cross_entropy(levels.flatten(0, 1), gold.flatten())
    if weight:
        found = rationale_loss(
            rationales, batch.rationales[..., columns], batch.rationale_mask[..., columns]
        )
        loss = loss + weight * found
    return loss


def train(
    model: BiEncoder,
    pairs: list[Pair],
    design: Design,
    columns: slice,
    chosen: Hyperparameters,
    checkpoint: Path | None = None,
) -> None:
    """Train in place; an interrupted training continues from its checkpoint."""
    encoders = [part for part in (model.response, model.seeker) if part is not None]

    def loss(members: list[Pair]) -> Tensor:
        batch = collate(members, window=design.context == "window")
        with precision(chosen):
            levels, rationales = model(batch)
        return loss_of(levels, rationales, batch, columns, design.rationale_weight)

    fine_tune(model, encoders, pairs, tokens_of, loss, chosen, "bi_encoder", checkpoint)


def fit(
    conversations: list[Conversation],
    design: Design,
    chosen: Hyperparameters = DEFAULTS,
    encoder: str | None = None,
    checkpoints: Path | None = None,
) -> Fitted:
    """Train on EPITOME pairs from pretrained encoders (a folder or hub name; None: packaged).

    An interrupted training is continued from its checkpoint in the folder `checkpoints`.
    """
    tokenizer = pretrained_tokenizer(encoder)
    pairs = pairs_of(conversations, tokenizer)
    groups = [slice(0, MECHANISMS)] if design.multitask else [slice(i, i + 1) for i in range(3)]
    found = []
    for columns in groups:
        torch.manual_seed(chosen.seed)
        model = build(design, columns.stop - columns.start, encoder)
        checkpoint = checkpoints and checkpoint_of(
            "bi_encoder", design, chosen, encoder, columns, pairs, folder=checkpoints
        )
        train(model, pairs, design, columns, chosen, checkpoint)
        found.append(model)
    return Fitted(design, found, tokenizer)


@torch.inference_mode()
def _predicted(model: BiEncoder, pairs: list[Pair], design: Design, size: int) -> Reading:
    levels = np.zeros((len(pairs), model.mechanisms), np.int64)
    masks: dict[int, Ints] = {}
    for positions, members in by_length(pairs, size, tokens_of):
        batch = collate(members, window=design.context == "window")
        scores, tokens = model(batch)
        chosen = scores.argmax(-1).numpy()
        for row, (position, pair) in enumerate(zip(positions, members, strict=True)):
            levels[position] = chosen[row]
            start = int(batch.first[row]) + 1
            own = tokens[row, start : start + len(pair.response) - 2] > 0
            if not design.rationale_weight:
                own = torch.zeros_like(own)
            masks[position] = own.numpy().astype(np.int64)
    return Reading(levels, [masks[position] for position in range(len(pairs))])


def tokens_of(pair: Pair) -> int:
    """Tokens of both posts."""
    return len(pair.response) + len(pair.seeker)
