"""Knowledge distillation in training: a teacher's outputs as targets beside the labels.

Encoders that were pretrained on different data make different mistakes, so a larger one's outputs
help more than a second run of the same one (Hinton et al. 2015). The teacher's vectors are computed
once; its heads read them through the same window as the student's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from models.fit.turn_features import encode_texts
from models.labels import HEADS
from models.model.batches import Segment, Step
from models.model.multitask import MultitaskModel, load, windows_of

TAUGHT = tuple(head for head in HEADS if head.corpus != "outcomes")
"""Heads with turn labels; the outcome heads are fitted afterwards (`models.fit.perceived`)."""


class TeacherError(ValueError):
    """The teacher may have been trained on the student's test data."""


@dataclass
class Teacher:
    """A trained model with its tokenizer."""

    model: MultitaskModel
    tokenizer: Tokenizer
    name: str

    @classmethod
    def read(cls, folder: Path, split_words: str) -> Teacher:
        """Load a teacher; raises TeacherError when it was trained on another split."""
        about = json.loads((folder / "training.json").read_text(encoding="utf-8"))
        if about["split"] != split_words:
            message = f"the teacher in {folder} was trained on {about['split']!r}, not on "
            raise TeacherError(message + repr(split_words))
        return cls(*load(folder), name=str(about["base_model"]))

    def prepare(self, segments: list[Segment]) -> None:
        """Set the teacher's vectors of every turn of the segments."""
        turns = list({id(turn): turn for segment in segments for turn in segment.turns}.values())
        vectors = encode_texts(self.model, self.tokenizer, [turn.turn.text for turn in turns])
        for turn, row in zip(turns, torch.from_numpy(vectors), strict=True):
            turn.taught = row

    @torch.no_grad()
    def answers(self, step: Step) -> dict[str, Tensor]:
        """The teacher's logits [targets, labels] by head, with the step's windows."""
        if step.taught is None:
            message = "the step's turns have no vectors of the teacher: call prepare() first"
            raise TeacherError(message)
        self.model.eval()
        logits = self.model.head.in_context(*windows_of(step.taught.float(), step.targets))
        return {head.name: values for head, values in zip(HEADS, logits, strict=True)}


def divergence(own: dict[str, Tensor], aim: dict[str, Tensor], role: Tensor) -> Tensor:
    """Weighted sum over the heads of KL(teacher | student), each a mean over its role's targets.

    `own` and `aim` are logits [targets, labels]; `role` [targets] is the speaker.
    """
    total = torch.zeros((), device=role.device)
    for head in TAUGHT:
        rows = role == head.role
        if rows.any():
            gap = torch.nn.functional.kl_div(
                own[head.name][rows].log_softmax(-1),
                aim[head.name][rows].log_softmax(-1),
                log_target=True,
                reduction="batchmean",
            )
            total = total + head.weight * gap
    return total
