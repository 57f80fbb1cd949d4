"""The network: an encoder, the mean of the target's states, a linear classifier for each head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from models.labels import HEADS_BY_NAME
from models.model.encoder import load_backbone
from research.window_classifier.windows import Batch


class WindowClassifier(nn.Module):
    """Logits of several heads for the target of a window."""

    def __init__(self, encoder: nn.Module, heads: Sequence[str]) -> None:
        super().__init__()
        self.encoder = encoder
        config: Any = encoder.config
        self.typed = getattr(config, "type_vocab_size", 1) > 1
        self.sizes = [len(HEADS_BY_NAME[head].labels) for head in heads]
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(int(config.hidden_size), sum(self.sizes))

    def forward(self, batch: Batch) -> tuple[Tensor, ...]:
        """Logits [n, labels] of each head.

        Where the encoder has token types, the target's tokens have the second one.
        """
        types = {"token_type_ids": batch.target} if self.typed else {}
        states = self.encoder(
            input_ids=batch.ids, attention_mask=batch.mask, **types
        ).last_hidden_state
        means = target_mean(states.float(), batch.target)
        found: tuple[Tensor, ...] = self.classifier(self.dropout(means)).split(self.sizes, dim=-1)
        return found


def target_mean(states: Tensor, target: Tensor) -> Tensor:
    """Mean of the states [n, tokens, hidden] where `target` [n, tokens] is 1, [n, hidden]."""
    weights = target.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1.0)


def build(heads: Sequence[str], encoder: str | None = None) -> WindowClassifier:
    """A classifier on pretrained weights: `encoder` is a folder or hub name (None: packaged)."""
    return WindowClassifier(load_backbone(encoder=encoder), heads)


def counts_of(labels: Sequence[Sequence[tuple[float, ...]]]) -> list[Tensor]:
    """Label counts of each head from the label distributions of examples."""
    columns = zip(*labels, strict=True)
    return [torch.tensor(column).sum(0) for column in columns]
