"""Training a bi-encoder and predicting with it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from models.data.corpora import Conversation
from models.encoder import pretrained_tokenizer
from models.labels import RATIONALE_ORDER
from models.losses import rationale_loss
from models.methods.bi_encoder.batches import Batch, Pair, by_length, collate, pairs_of, shuffled
from models.methods.bi_encoder.design import Design
from models.methods.bi_encoder.model import BiEncoder, build, freeze
from models.methods.resumable import checkpoint_of, optimise
from models.optimisation import Optimisation

Ints = NDArray[np.int64]
MECHANISMS = len(RATIONALE_ORDER)


@dataclass(frozen=True)
class Hyperparameters:
    """Of the training: batch size and epochs as published, rates as in `models.train`.

    The published rate, 2e-5, was chosen for RoBERTa-base; smaller encoders need larger ones.
    `frozen_layers` counts each encoder's lowest layers; the word embeddings are frozen as well.
    """

    epochs: int = 4
    pairs: int = 32
    encoder_rate: float = 8e-5
    head_rate: float = 1e-3
    frozen_layers: int = 2
    warm_up: float = 0.06
    seed: int = 17
    bf16: bool = True


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
    freeze(model, chosen.frozen_layers)
    heads = [*model.level.parameters(), *model.rationale.parameters()]
    own = {id(parameter) for parameter in heads}
    body = [p for p in model.parameters() if p.requires_grad and id(p) not in own]
    groups = [
        {"params": body, "lr": chosen.encoder_rate},
        {"params": heads, "lr": chosen.head_rate},
    ]
    optimiser = torch.optim.AdamW(groups, weight_decay=0.01)
    steps = chosen.epochs * math.ceil(len(pairs) / chosen.pairs)
    optimisation = Optimisation(model, optimiser, steps, chosen.warm_up)

    def batches(epoch: int) -> Iterator[list[Pair]]:
        return shuffled(pairs, chosen.pairs, chosen.seed, "bi_encoder", epoch)

    def loss(members: list[Pair]) -> Tensor:
        batch = collate(members, window=design.context == "window")
        with torch.autocast("cpu", torch.bfloat16, enabled=chosen.bf16):
            levels, rationales = model(batch)
        return loss_of(levels, rationales, batch, columns, design.rationale_weight)

    model.train()
    optimise(optimisation, batches, loss, chosen.seed, checkpoint)
    model.eval()


def fit(
    conversations: list[Conversation],
    design: Design,
    chosen: Hyperparameters | None = None,
    encoder: str | None = None,
    checkpoints: Path | None = None,
) -> Fitted:
    """Train on EPITOME pairs from pretrained encoders (a folder or hub name; None: packaged).

    An interrupted training is continued from its checkpoint in the folder `checkpoints`.
    """
    chosen = chosen or Hyperparameters()
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
    for members in by_length(pairs, size):
        batch = collate([pair for _, pair in members], window=design.context == "window")
        scores, tokens = model(batch)
        chosen = scores.argmax(-1).numpy()
        for row, (position, pair) in enumerate(members):
            levels[position] = chosen[row]
            start = int(batch.first[row]) + 1
            own = tokens[row, start : start + len(pair.response) - 2] > 0
            if not design.rationale_weight:
                own = torch.zeros_like(own)
            masks[position] = own.numpy().astype(np.int64)
    return Reading(levels, [masks[position] for position in range(len(pairs))])
