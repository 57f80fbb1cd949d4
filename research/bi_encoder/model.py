"""The network: two encoders, attention from response to seeker post, two linear outputs.

response  e_R [tokens, hidden] ── h = e_R + softmax(e_R e_Sᵀ / √hidden) e_S ──┬─ h[CLS] → level
seeker    e_S [tokens, hidden] ──────────────┘                                └─ h[i]  → rationale
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from models.model.encoder import ABSENT, ADAPTED, load_backbone
from research.bi_encoder.batches import Batch
from research.bi_encoder.design import Context, Design
from stream_app.core.measures.heads import LEVELS


class BiEncoder(nn.Module):
    """Levels and rationales of `mechanisms` mechanisms from one pair of encoders."""

    def __init__(
        self, response: nn.Module, seeker: nn.Module | None, context: Context, mechanisms: int
    ) -> None:
        super().__init__()
        self.response, self.seeker, self.context = response, seeker, context
        self.mechanisms = mechanisms
        config: Any = response.config
        hidden = int(config.hidden_size)
        self.typed = getattr(config, "type_vocab_size", 1) > 1
        size = 2 * hidden if context == "joined" else hidden
        self.dropout = nn.Dropout(0.1)
        self.level = nn.Linear(size, mechanisms * len(LEVELS))
        self.rationale = nn.Linear(size, mechanisms)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Level logits [n, mechanisms, 3] and rationale logits [n, tokens, mechanisms]."""
        types = {"token_type_ids": batch.types} if self.typed else {}
        states = self.response(
            input_ids=batch.ids, attention_mask=batch.mask, **types
        ).last_hidden_state
        if self.seeker is not None:
            heard = self.seeker(
                input_ids=batch.seeker_ids, attention_mask=batch.seeker_mask
            ).last_hidden_state
            states = self._in_context(states, heard, batch.seeker_mask)
        states = self.dropout(states)
        levels = self.level(states[:, 0]).unflatten(-1, (self.mechanisms, len(LEVELS)))
        return levels.float(), self.rationale(states).float()

    def _in_context(self, states: Tensor, heard: Tensor, mask: Tensor) -> Tensor:
        if self.context == "joined":
            first = heard[:, :1].expand(-1, states.shape[1], -1)
            return torch.cat([states, first], -1)
        found: Tensor = states + attend(states, heard, mask)
        return found


def attend(states: Tensor, heard: Tensor, mask: Tensor) -> Tensor:
    """Single-head attention without projections (equation 3), [n, tokens, hidden].

    `states` [n, tokens, hidden] are the queries; `heard` [n, slots, hidden] keys and values, of
    which `mask` [n, slots] is 0 for padding.
    """
    scores = states @ heard.transpose(1, 2) / states.shape[-1] ** 0.5
    absent = (1 - mask).unsqueeze(1).to(scores.dtype) * ABSENT
    found: Tensor = (scores + absent).softmax(-1) @ heard
    return found


def build(design: Design, mechanisms: int, encoder: str | None = None) -> BiEncoder:
    """A bi-encoder from pretrained weights: `encoder` is a folder or hub name (None: packaged)."""
    two = design.context in ("attention", "joined")
    adapted = ADAPTED if design.adapted else None
    seeker = load_backbone(adapted, encoder) if two else None
    return BiEncoder(load_backbone(adapted, encoder), seeker, design.context, mechanisms)
