"""Calibrate the student to the teacher.

Temperature and bias of each head are fitted on turns held out from both, without their labels, so
that the student's distribution is closest to the teacher's calibrated one. Offsets and thresholds
(including abstention) are copied from the teacher, whose values were fitted on out-of-fold
predictions; so are the outcome models, which read these probabilities.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from numpy.typing import NDArray

from models.distil.training import Teacher, logits_of
from models.distil.turns import Material, group
from models.fit.calibrate import Calibration, fit_to
from models.labels import HEADS
from models.model.batches import FINAL, PROVISIONAL, encoder_chunks
from models.model.multitask import MultitaskModel

PIECES = 64
"""Pieces per forward pass."""
Logits = dict[str, NDArray[np.float64]]


def fit(
    student: MultitaskModel, teacher: Teacher, material: Material, of_teacher: Calibration
) -> Calibration:
    """Fit the student's calibration."""
    result = copy.deepcopy(of_teacher)
    own, aim = both_logits(student.eval(), teacher, material)
    for name, logits in own.items():
        target = of_teacher.probabilities(name, aim[name])
        result.temperatures[name], result.biases[name] = fit_to(logits, target, copies=2)
    return result


@torch.inference_mode()
def both_logits(
    student: MultitaskModel, teacher: Teacher, material: Material
) -> tuple[Logits, Logits]:
    """Logits by head of student and teacher on the held-out turns, in both views."""
    own: dict[str, list[torch.Tensor]] = {head.name: [] for head in HEADS}
    aim: dict[str, list[torch.Tensor]] = {head.name: [] for head in HEADS}
    for first in range(0, len(material.held_out), PIECES):
        pieces = material.held_out[first : first + PIECES]
        drawn = group(pieces, FINAL, "calibration")
        vectors = torch.empty(len(drawn.texts), 2, student.config.hidden_size)
        for chunk in encoder_chunks(drawn.tokenised(material.texts), 2048):
            vectors[chunk.turns], _ = student.encoder(chunk.input_ids, chunk.attention_mask)
        for view in (drawn, group(pieces, PROVISIONAL, "calibration")):
            for found, head, held in (
                (own, student.head, vectors),
                (aim, teacher.head, teacher.vectors(view.texts)),
            ):
                for spec, logits in zip(HEADS, logits_of(head, view, held), strict=True):
                    found[spec.name].append(logits[view.role == spec.role])
    return _joined(own), _joined(aim)


def _joined(parts: dict[str, list[torch.Tensor]]) -> Logits:
    return {
        name: torch.cat(values).double().numpy()
        for name, values in parts.items()
        if sum(map(len, values))
    }
