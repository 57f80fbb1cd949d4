"""A bundle's graphs as a model, for measuring what is shipped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import torch
from torch import Tensor

from models.labels import HEADS
from models.model.batches import SLOTS, Step, Targets
from models.model.heads import through_half

ENCODER_OUTPUTS = ("vectors", "rationale_logits")
HEAD_OUTPUTS = tuple(head.name for head in HEADS)
HEAD_INPUTS = (
    "target",
    "target_role",
    "context",
    "context_role",
    "context_distance",
    "context_mask",
)
TOLERANCE = 1e-4
"""Largest difference allowed between a graph and its PyTorch model."""


class OnnxModel:
    """A bundle's two graphs as a scorer of steps (see `models.evaluate.predict.Scorer`).

    With `alone` every turn is encoded singly, as in the service if results depend on the batch.
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


def example_windows(hidden_size: int) -> dict[str, Tensor]:
    """Three targets with partial context."""
    return {
        "target": torch.zeros(3, 2, hidden_size),
        "target_role": torch.tensor([1, 0, 1]),
        "context": torch.zeros(3, SLOTS, hidden_size),
        "context_role": torch.zeros(3, SLOTS, dtype=torch.long),
        "context_distance": torch.full((3, SLOTS), -1),
        "context_mask": torch.ones(3, SLOTS, dtype=torch.long),
    }
