"""The folds of `models.fit.crossvalidate` for methods that read EPITOME's pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.data.corpora import Conversation
from models.data.split import held_out, split_fold
from models.labels import RATIONALE_ORDER

FOLDS, SEED = 5, 17


@dataclass(frozen=True)
class Part:
    """One fold's training and test pairs of EPITOME."""

    number: int
    train: list[Conversation]
    test: list[Conversation]

    @property
    def gold(self) -> NDArray[np.int64]:
        """Labelled levels of the test responses, [n, 3]."""
        return labelled_levels(self.test)


def labelled_levels(pairs: Sequence[Conversation]) -> NDArray[np.int64]:
    """Levels of the responses by mechanism, [pairs, 3]."""
    rows = [[np.argmax(p.turns[-1].labels[head]) for head in RATIONALE_ORDER] for p in pairs]
    return np.array(rows, np.int64).reshape(-1, len(RATIONALE_ORDER))


def part_of(conversations: Sequence[Conversation], fold: int) -> Part:
    """A fold's parts of EPITOME."""
    pairs = [item for item in conversations if item.corpus == "epitome"]
    return Part(
        fold, split_fold(pairs, fold, FOLDS, SEED)["train"], held_out(pairs, fold, FOLDS, SEED)
    )
