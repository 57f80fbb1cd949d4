"""Precompute the frozen layers' output of each turn, for all epochs and folds."""

from __future__ import annotations

import torch
from torch import Tensor

from models.model.batches import Segment, TokenisedTurn, encoder_chunks
from models.model.encoder import TurnEncoder


class LowerStates:
    """Cache of token states above the frozen layers, by token ids, in bfloat16 (768 bytes each)."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], Tensor] = {}

    @torch.inference_mode()
    def fill(self, segments: list[Segment], encoder: TurnEncoder, *, bf16: bool = True) -> None:
        """Set the `lower` states of every turn; a no-op without frozen layers.

        The frozen layers must be as pretrained, because states are reused from one model to the
        next. With `bf16` they are also computed in bfloat16.
        """
        if not encoder.frozen_layers:
            return
        turns = {id(turn): turn for segment in segments for turn in segment.turns}
        missing: dict[tuple[int, ...], TokenisedTurn] = {}
        for turn in turns.values():
            if tuple(turn.ids) not in self._known:
                missing.setdefault(tuple(turn.ids), turn)
        training = encoder.training
        encoder.eval()
        for chunk in encoder_chunks(todo := list(missing.values()), 2048):
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                states = encoder.lower(chunk.input_ids, chunk.attention_mask, encoder.frozen_layers)
            for row, index in enumerate(chunk.turns.tolist()):
                ids = tuple(todo[index].ids)
                self._known[ids] = states[row, : len(ids)].to(torch.bfloat16).clone()
        encoder.train(training)
        for turn in turns.values():
            turn.lower = self._known[tuple(turn.ids)]
