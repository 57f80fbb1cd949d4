"""What frozen layers make of each turn, computed once: no epoch and no fold repeats it."""

from __future__ import annotations

import torch
from torch import Tensor

from models.batches import Segment, TokenisedTurn, encoder_chunks
from models.encoder import TurnEncoder


class LowerStates:
    """Token states above the frozen layers, by token ids, as bfloat16 (768 bytes a token)."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], Tensor] = {}

    @torch.inference_mode()
    def fill(self, segments: list[Segment], encoder: TurnEncoder, *, bf16: bool = True) -> None:
        """Give every turn of the segments its `lower` states; nothing to do without frozen layers.

        The frozen layers must be as pretrained: states are kept from one model to the next. They
        are computed in bfloat16 where `bf16` says so, and kept in it.
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
