"""Run a model over segments and keep what the metrics need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.batches import Segment, Step, Window, collate, dice
from models.labels import HEADS, RATIONALE_ORDER

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]


class Scorer(Protocol):
    """Scores a step: logits by head, and rationale logits [n, tokens, 3] by encoder chunk."""

    def __call__(self, step: Step) -> tuple[dict[str, Tensor], list[Tensor]]: ...


@dataclass
class HeadOutputs:
    """Logits and target distributions of one head, both [n, labels]."""

    logits: Floats
    target: Floats

    @property
    def gold(self) -> Ints:
        """The label most annotators chose, [n]."""
        return self.target.argmax(-1)

    @property
    def predicted(self) -> Ints:
        """The most likely label, [n]."""
        return self.logits.argmax(-1)

    def probabilities(self, temperature: float = 1.0) -> Floats:
        """Softmax of the logits divided by the temperature, [n, labels]."""
        scaled = self.logits / temperature
        powers = np.exp(scaled - scaled.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)


@dataclass
class RationaleOutput:
    """One mechanism's rationale in one response: probabilities and gold mask over its tokens."""

    probabilities: Floats
    gold: Ints
    predicted_level: int

    def mask(self, threshold: float) -> Ints:
        """Predicted tokens. A response judged "none" has no rationale to show."""
        return (self.probabilities >= threshold).astype(int) * int(self.predicted_level > 0)


@dataclass
class Predictions:
    """Outputs by head on its labelled turns, and rationale outputs by mechanism.

    `everywhere` has each head's logits [turns, labels] on all turns of the head's role, labelled
    for it or not: what the service will ask of it.
    """

    heads: dict[str, HeadOutputs]
    rationales: dict[str, list[RationaleOutput]] = field(default_factory=dict)
    everywhere: dict[str, Floats] = field(default_factory=dict)


@torch.inference_mode()
def predict(scorer: Scorer, segments: list[Segment], window: Window) -> Predictions:
    """Predictions for every labelled turn of the segments, seen through the given window."""
    logits: dict[str, list[Tensor]] = {head.name: [] for head in HEADS}
    targets: dict[str, list[Tensor]] = {head.name: [] for head in HEADS}
    everywhere: dict[str, list[Tensor]] = {head.name: [] for head in HEADS}
    rationales: dict[str, list[RationaleOutput]] = {name: [] for name in RATIONALE_ORDER}
    chance = dice("prediction")
    for start in range(0, len(segments), 8):
        step = collate(segments[start : start + 8], window, chance, chunk_tokens=1024)
        if not len(step.targets.turn):
            continue
        step_logits, chunk_logits = scorer(step)
        for head in HEADS:
            everywhere[head.name].append(step_logits[head.name][step.targets.role == head.role])
        for name, (rows, target) in step.targets.labels.items():
            logits[name].append(step_logits[name][rows])
            targets[name].append(target)
        for name, output in _rationales(step, step_logits, chunk_logits):
            rationales[name].append(output)
    heads = {
        name: HeadOutputs(torch.cat(values).double().numpy(), torch.cat(targets[name]).numpy())
        for name, values in logits.items()
        if values
    }
    return Predictions(
        heads,
        rationales,
        {name: torch.cat(values).float().numpy() for name, values in everywhere.items() if values},
    )


def _rationales(
    step: Step, logits: dict[str, Tensor], chunk_logits: list[Tensor]
) -> Iterator[tuple[str, RationaleOutput]]:
    row_of = {int(turn): row for row, turn in enumerate(step.targets.turn)}
    for chunk, values in zip(step.chunks, chunk_logits, strict=True):
        probabilities = values.float().sigmoid()
        for row in chunk.rationale_mask.any(-1).any(-1).nonzero().flatten().tolist():
            size = int(chunk.attention_mask[row].sum())
            inner = slice(1, size - 1)
            target_row = row_of[int(chunk.turns[row])]
            for index, name in enumerate(RATIONALE_ORDER):
                if not chunk.rationale_mask[row, 0, index]:
                    continue
                output = RationaleOutput(
                    probabilities=probabilities[row, inner, index].numpy(),
                    gold=chunk.rationale[row, inner, index].int().numpy(),
                    predicted_level=int(logits[name][target_row].argmax()),
                )
                yield name, output
