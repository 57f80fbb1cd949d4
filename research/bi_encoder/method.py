"""The rows of EPITOME's Table 5 on our folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from models.data import Conversation
from models.data.corpora import Turn
from models.labels import CLIENT, RATIONALE_ORDER
from models.model.batches import overlaps
from models.model.encoder import ADAPTED, load_tokenizer
from models.pages import report
from models.probes.scorers import Dialogue, Levels
from research.baselines import page
from research.bi_encoder.design import DESIGNS
from research.bi_encoder.model import build
from research.bi_encoder.training import MECHANISMS, Fitted, Reading, fit
from research.fine_tuning import Hyperparameters, parameters_of
from research.folds import part_of
from research.label_method import Figures, LabelMethod, Tested, by_mechanism
from research.method import Inputs, Row

MEASURED = ("bi_encoder", "no_attention", "no_seeker", "window", "independent")
"""Rows whose networks differ in speed or memory."""


@dataclass(frozen=True)
class BiEncoderMethod(Hyperparameters, LabelMethod):
    """Epochs and batches as published; `lambda_rationales` replaces the row's own weight."""

    name: ClassVar = "bi_encoder"
    paper: ClassVar = "Sharma et al. 2020 (EPITOME), section 5.2 and Table 5"
    page: ClassVar = "baselines"

    epochs: int = 4
    lambda_rationales: float | None = None

    def rows(self) -> dict[str, Row]:
        return {
            key: Row(
                design.words,
                design.seeker_words,
                compared=True,
                scored=key in MEASURED,
                cost_of=None if key in MEASURED else "bi_encoder",
                needs=ADAPTED if design.adapted else None,
            )
            for key, design in DESIGNS.items()
        }

    def run(self, row: str, fold: int, inputs: Inputs) -> Tested:
        design = DESIGNS[row]
        if self.lambda_rationales is not None:
            design = replace(design, rationale_weight=self.lambda_rationales)
        part = part_of(inputs.conversations, fold)
        fitted = fit(part.train, design, self, self.encoder, inputs.checkpoints)
        reading = fitted.read(part.test)
        sizes = [parameters_of(model) for model in fitted.models]
        return Tested(
            by_mechanism(part.gold),
            by_mechanism(reading.levels),
            len(part.train),
            (sum(size for size, _ in sizes), sum(size for _, size in sizes)),
            rationale_figures(fitted, part.test, reading) if design.rationale_weight else {},
        )

    def values(self, results: Path) -> dict[str, Any]:
        return page.values(results)

    def scorer(self, row: str, training: list[Conversation]) -> BiEncoderLevels:
        """A row's network before training."""
        del training
        design = replace(DESIGNS[row], adapted=False)
        networks = [MECHANISMS] if design.multitask else [1] * MECHANISMS
        found = [build(design, mechanisms).eval() for mechanisms in networks]
        return BiEncoderLevels(Fitted(design, found, load_tokenizer()))


class BiEncoderLevels:
    """A `LevelScorer`; of the context, it reads the turn before the response."""

    def __init__(self, fitted: Fitted) -> None:
        self.fitted = fitted

    def levels(self, dialogues: Sequence[Dialogue]) -> Levels:
        """As `LevelScorer`."""
        pairs = [
            Conversation(
                "epitome",
                "",
                [d[-2] if len(d) > 1 else Turn(CLIENT, ""), Turn(d[-1].role, d[-1].text)],
            )
            for d in dialogues
        ]
        return self.fitted.read(pairs).levels


def rationale_figures(
    fitted: Fitted, test: list[Conversation], reading: Reading
) -> dict[str, Figures]:
    """Token and span scores by mechanism over the responses whose phrases were found.

    Tokens beyond the encoder's length are outside every predicted rationale.
    """
    found: dict[str, tuple[list[Any], list[Any]]] = {head: ([], []) for head in RATIONALE_ORDER}
    for pair, mask in zip(test, reading.masks, strict=True):
        turn = pair.turns[-1]
        offsets = fitted.tokenizer.encode(turn.text, add_special_tokens=False).offsets
        for column, head in enumerate(RATIONALE_ORDER):
            if head not in turn.rationales:
                continue
            spans = turn.rationales[head]
            given = np.zeros(len(offsets), np.int64)
            given[: len(mask)] = mask[:, column]
            found[head][0].append(np.array([overlaps(o, spans) for o in offsets], np.int64))
            found[head][1].append(given)
    return {head: report.rationale(*lists) for head, lists in found.items()}
