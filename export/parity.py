"""Compare the exported graph with the PyTorch model over many shapes and masks."""

from __future__ import annotations

import itertools
from pathlib import Path

import torch
from torch import Tensor

from models.model.batches import SLOTS
from models.model.heads import through_half
from models.model.multitask import MultitaskModel
from models.model.onnx_model import HEAD_OUTPUTS, TOLERANCE, OnnxModel

TURN_SHAPES = tuple(itertools.product((1, 2, 5), (1, 2, 17, 64, 192)))


class ParityError(RuntimeError):
    """An exported graph differs from its PyTorch model."""


@torch.inference_mode()
def check_parity(model: MultitaskModel, encoder: Path, head: Path) -> dict[str, float | int]:
    """Largest absolute differences over many shapes; ParityError beyond 1e-4 or if not finite."""
    exported = OnnxModel(encoder, head)
    generator = torch.Generator().manual_seed(0)
    worst_encoder, worst_head = 0.0, 0.0
    vocabulary = model.config.vocab_size
    for batch, tokens in TURN_SHAPES:
        ids = torch.randint(0, vocabulary, (batch, tokens), generator=generator)
        sizes = torch.randint(1, tokens + 1, (batch, 1), generator=generator)
        sizes[0] = tokens
        mask = (torch.arange(tokens) < sizes).long()
        expected = model.encoder(ids, mask)
        present = mask.unsqueeze(-1)
        given = exported.encode(ids, mask)
        worst_encoder = max(
            worst_encoder,
            difference(expected[0], given[0]),
            difference(expected[1] * present, given[1] * present),
        )
        inputs = random_windows(expected[0], generator)
        for empty in (False, True):
            if empty:
                inputs["context_mask"] = torch.zeros_like(inputs["context_mask"])
            scores = exported.score(inputs)
            for name, logits in zip(HEAD_OUTPUTS, model.head(**inputs), strict=True):
                worst_head = max(worst_head, difference(logits, scores[name]))
    return {
        "tolerance": TOLERANCE,
        "shapes": len(TURN_SHAPES),
        "encoder_max_abs_difference": worst_encoder,
        "head_max_abs_difference": worst_head,
    }


def random_windows(vectors: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
    """Inputs of the head graph with these targets [n, 2, hidden] and a random, ragged context."""
    count = len(vectors)
    shape = (count, SLOTS)
    return {
        "target": through_half(vectors),
        "target_role": torch.randint(0, 2, (count,), generator=generator),
        "context": through_half(torch.randn(*shape, vectors.shape[-1], generator=generator) / 2),
        "context_role": torch.randint(0, 2, shape, generator=generator),
        "context_distance": torch.randint(-9, 10, shape, generator=generator),
        "context_mask": torch.randint(0, 2, shape, generator=generator),
    }


def difference(expected: Tensor, given: Tensor) -> float:
    """Largest absolute difference; ParityError when it is too large or not finite."""
    if not torch.isfinite(given).all():
        message = "the exported graph returned a value that is not finite"
        raise ParityError(message)
    worst = float((expected - given).abs().max())
    if worst > TOLERANCE:
        message = f"the exported graph differs from the model by {worst:.2e} (> {TOLERANCE:.0e})"
        raise ParityError(message)
    return worst
