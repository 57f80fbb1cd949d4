"""A window classifier as a scorer of dialogues."""

from __future__ import annotations

from collections.abc import Sequence

from models.data import Conversation
from models.model.encoder import load_tokenizer
from models.probes.scorers import Dialogue, Levels
from research.window_classifier.design import design_of
from research.window_classifier.model import build
from research.window_classifier.training import Fitted
from research.window_classifier.windows import Windows


class WindowLevels:
    """A `LevelScorer` of EPITOME's levels; a dialogue's last turn is the target."""

    def __init__(self, fitted: Fitted) -> None:
        self.fitted = fitted

    def levels(self, dialogues: Sequence[Dialogue]) -> Levels:
        """As `LevelScorer`."""
        examples = [self.fitted.windows.example(turns, len(turns) - 1) for turns in dialogues]
        return self.fitted.read(examples)


def untrained(key: str, training: list[Conversation]) -> WindowLevels:
    """A row's network before training: as fast and as large as a trained one."""
    del training
    design = design_of(key)
    return WindowLevels(Fitted(build(design.heads).eval(), Windows(load_tokenizer(), design)))
