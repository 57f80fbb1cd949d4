"""A bi-encoder as a scorer of dialogues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from models.data import Conversation
from models.data.corpora import Turn
from models.labels import CLIENT
from models.model.encoder import load_tokenizer
from models.probes.scorers import Dialogue, Levels
from research.bi_encoder.design import DESIGNS
from research.bi_encoder.model import build
from research.bi_encoder.training import MECHANISMS, Fitted


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


def untrained(key: str, training: list[Conversation]) -> BiEncoderLevels:
    """A row's network before training: as fast and as large as a trained one."""
    del training
    design = replace(DESIGNS[key], adapted=False)
    networks = [MECHANISMS] if design.multitask else [1] * MECHANISMS
    found = [build(design, mechanisms).eval() for mechanisms in networks]
    return BiEncoderLevels(Fitted(design, found, load_tokenizer()))
