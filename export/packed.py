"""The turn encoder without padding: the tokens of a batch are concatenated.

Nearly all of an encoder's work is per token and independent of the turn. Only attention needs whole
turns: there, and only there, the tokens are laid out as [turns, tokens] with padding. Turns of
different lengths can therefore share a call at the price of padded attention, which is cheap for
turns as short as these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from models.model.encoder import ABSENT, TurnEncoder

if TYPE_CHECKING:
    from transformers.models.bert.modeling_bert import BertCrossAttention, BertSelfAttention


class PackedEncoder(nn.Module):
    """Computes the same as ``encoder``; where the mask is 0, logits are undefined."""

    def __init__(self, encoder: TurnEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        config = encoder.bert.config
        self.heads: int = config.num_attention_heads
        self.head_size: int = config.hidden_size // self.heads

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """As `TurnEncoder.forward`."""
        batch, longest = input_ids.shape
        flat = attention_mask.flatten()
        place = flat.nonzero().squeeze(1)  # by token: its index in the padded layout
        slot = (flat.cumsum(0) - 1).clamp(min=0)  # by padded position: its index among the tokens
        turn = torch.arange(batch).unsqueeze(1).expand(batch, longest).flatten()[place]
        position = torch.arange(longest).unsqueeze(0).expand(batch, longest).flatten()[place]

        head = torch.arange(self.heads)
        spread = slot.view(batch, 1, longest) * self.heads + head.view(1, -1, 1)
        gather = (turn * self.heads * longest + position).unsqueeze(1) + head * longest
        absent = (1 - attention_mask[:, None, None, :]).to(torch.float32) * ABSENT

        states = self._embedded(input_ids.flatten()[place], position)
        for layer in self.encoder.layers:
            seen = self._attended(layer.attention.self, states, spread, gather, absent)
            states = layer.attention.output(seen, states)
            states = layer.output(layer.intermediate(states), states)
        return self._read(states, attention_mask, slot.view(batch, longest), turn)

    def _embedded(self, words: Tensor, position: Tensor) -> Tensor:
        known = self.encoder.bert.embeddings
        total: Tensor = (
            known.word_embeddings(words)
            + known.token_type_embeddings.weight[0]
            + known.position_embeddings(position)
        )
        normal: Tensor = known.LayerNorm(total)
        return normal.unsqueeze(0)

    def _attended(
        self,
        attention: BertSelfAttention | BertCrossAttention,
        states: Tensor,
        spread: Tensor,
        gather: Tensor,
        absent: Tensor,
    ) -> Tensor:
        """``states`` [1, tokens, hidden]; ``spread`` [batch, heads, longest], ``gather`` back.

        Rows of ``head_size`` numbers are gathered into their turn and head, and back.
        """
        query, key, value = (
            rows(part(states).view(-1, self.head_size), spread)
            for part in (attention.query, attention.key, attention.value)
        )
        scores = query @ key.transpose(-1, -2) * self.head_size**-0.5 + absent
        seen = scores.softmax(-1) @ value
        back = rows(seen.reshape(-1, self.head_size), gather)
        return back.view(1, -1, self.heads * self.head_size)

    def _read(
        self, states: Tensor, attention_mask: Tensor, slot: Tensor, turn: Tensor
    ) -> tuple[Tensor, Tensor]:
        encoder, tokens = self.encoder, states.squeeze(0)
        weights = attention_mask.unsqueeze(-1).to(states.dtype)
        mean = (rows(tokens, slot) * weights).sum(1) / weights.sum(1).clamp(min=1.0)
        vectors = torch.stack([rows(tokens, slot[:, 0]), mean], dim=1)
        of_turn = rows(encoder.turn_projection(vectors.flatten(1)), turn)
        hidden = nn.functional.gelu(encoder.token_projection(states) + of_turn)
        return vectors, rows(encoder.rationale_output(hidden).squeeze(0), slot)


def rows(table: Tensor, index: Tensor) -> Tensor:
    """Rows [*index, width] of a table [n, width]; the graph's Gather copies whole rows."""
    return nn.functional.embedding(index, table)
