"""Does the exported graph say what the PyTorch model says? Shapes, ragged masks, no context."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnxruntime as ort
import torch
from torch import Tensor

from export.onnx_graphs import ENCODER_OUTPUTS, HEAD_OUTPUTS
from models.batches import SLOTS, Step, Targets
from models.heads import through_half
from models.multitask import MultitaskModel

TOLERANCE = 1e-4
TURN_SHAPES = tuple(itertools.product((1, 2, 5), (1, 2, 17, 64, 192)))


class ParityError(RuntimeError):
    """An exported graph differs from the model it came from."""


class OnnxModel:
    """A bundle's two graphs as a scorer of steps (see `models.evaluate.predict.Scorer`).

    With `alone` every turn is encoded by itself, as the service does with an encoder whose
    results depend on the batch.
    """

    def __init__(self, encoder: Path, head: Path, *, threads: int = 1, alone: bool = False) -> None:
        self.encoder = session(encoder, threads)
        self.head = session(head, threads)
        self.alone = alone
        self.names = [output.name for output in self.head.get_outputs()]

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors [n, 2, hidden] and rationale logits [n, tokens, 3]."""
        ids, mask = input_ids.numpy(), attention_mask.numpy()
        if not self.alone:
            vectors, logits = self._run(ids, mask)
            return torch.from_numpy(vectors), torch.from_numpy(logits)
        padded = torch.zeros(*ids.shape, 3)
        rows = []
        for row, size in enumerate(mask.sum(1)):
            vectors, logits = self._run(ids[row : row + 1, :size], mask[row : row + 1, :size])
            padded[row, :size] = torch.from_numpy(logits[0])
            rows.append(torch.from_numpy(vectors))
        return torch.cat(rows), padded

    def _run(self, ids: np.ndarray, mask: np.ndarray) -> list[np.ndarray]:
        inputs = {"input_ids": ids, "attention_mask": mask}
        outputs: list[np.ndarray] = self.encoder.run(ENCODER_OUTPUTS, inputs)
        return outputs

    def score(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Logits [n, labels] by head for named inputs of the head graph."""
        outputs = self.head.run(self.names, {key: x.numpy() for key, x in inputs.items()})
        return dict(zip(self.names, map(torch.from_numpy, outputs), strict=True))

    def __call__(self, step: Step) -> tuple[dict[str, Tensor], list[Tensor]]:
        """Logits by head for the step's targets, and rationale logits by encoder chunk."""
        vectors = torch.empty(step.turns, 2, self.encoder.get_outputs()[0].shape[-1])
        chunk_logits = []
        for chunk in step.chunks:
            encoded, logits = self.encode(chunk.input_ids, chunk.attention_mask)
            vectors[chunk.turns] = encoded
            chunk_logits.append(logits)
        return self.score(head_inputs(through_half(vectors), step.targets)), chunk_logits


def session(graph: Path | bytes, threads: int = 1) -> ort.InferenceSession:
    """A CPU session with this many threads; of a file, or of a model's bytes."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def head_inputs(vectors: Tensor, targets: Targets) -> dict[str, Tensor]:
    """The head graph's inputs for a step's targets."""
    return {
        "target": vectors[targets.turn],
        "target_role": targets.role,
        "context": vectors[targets.context, 1],
        "context_role": targets.context_role,
        "context_distance": targets.context_distance.contiguous(),
        "context_mask": targets.context_mask,
    }


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
        message = "the exported graph gave a value that is not finite"
        raise ParityError(message)
    worst = float((expected - given).abs().max())
    if worst > TOLERANCE:
        message = f"the exported graph differs from the model by {worst:.2e} (> {TOLERANCE:.0e})"
        raise ParityError(message)
    return worst
