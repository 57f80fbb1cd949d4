"""The two model-free baselines as scorers, to measure their speed and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from models.data import Conversation
from models.evaluate.text_baseline import regression_on_words
from research.folds import labelled_levels

if TYPE_CHECKING:
    from models.probes.scorers import Dialogue, Levels


class Majority:
    """The most frequent level of each mechanism in the training part."""

    def __init__(self, training: Sequence[Conversation]) -> None:
        columns = labelled_levels(training).T
        self.commonest = np.array([np.bincount(column).argmax() for column in columns])

    def levels(self, dialogues: Sequence[Dialogue]) -> Levels:
        """As `LevelScorer`."""
        return np.tile(self.commonest, (len(dialogues), 1))


class Words:
    """`models.evaluate.text_baseline`, fitted on the responses of the training part."""

    def __init__(self, training: Sequence[Conversation]) -> None:
        texts = np.array([pair.turns[-1].text for pair in training], np.str_)
        columns = labelled_levels(training).T
        self.regressions = [regression_on_words().fit(texts, column) for column in columns]

    def levels(self, dialogues: Sequence[Dialogue]) -> Levels:
        """As `LevelScorer`."""
        texts = [dialogue[-1].text for dialogue in dialogues]
        columns = [fitted.predict(texts) for fitted in self.regressions]
        return np.stack(columns, axis=1).astype(np.int64)
