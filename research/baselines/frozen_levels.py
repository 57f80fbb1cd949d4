"""EPITOME's levels from a frozen encoder.

A multinomial logistic regression on mean-pooled sentence vectors, one for each mechanism, on the
folds of our models. Three inputs: the response alone; seeker post and response as two vectors; both
in one text, which the encoder reads together (a concatenated window). The penalty is chosen inside
the training part, by macro-F1 in three folds. Nothing in the encoder is trained, so the rows show
what fine-tuning adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold

from models.data import Conversation
from models.model.encoder import load_backbone
from research.baselines import page
from research.folds import FOLDS, labelled_levels, part_of
from research.label_method import LabelMethod, Tested, by_mechanism
from research.method import Inputs, Row
from research.sentence_vectors import CACHE, SentenceEncoder, Text

if TYPE_CHECKING:
    from models.probes.scorers import Dialogue, Levels

STRENGTHS = (1.0, 10.0, 100.0)
"""Inverse ridge penalties to choose from."""

Input = Literal["alone", "two_vectors", "window"]
Floats = NDArray[np.floating[Any]]
_row = partial(Row, compared=True, scored=True)


VIEWS: dict[str, tuple[Input, Row]] = {
    "frozen_alone": ("alone", _row("frozen encoder, response alone", "none")),
    "frozen_two_vectors": (
        "two_vectors",
        _row("frozen encoder, vectors of seeker post and response", "seeker post"),
    ),
    "frozen_window": ("window", _row("frozen encoder, both in one text", "seeker post")),
}


class Embedder:
    """Adapts `SentenceEncoder` to dialogues: features [dialogues, size]."""

    def __init__(self, encode: SentenceEncoder, view: Input) -> None:
        self.encode, self.view = encode, view

    def __call__(self, dialogues: Sequence[Dialogue]) -> Floats:
        """Features of the last turn of each dialogue; of its context, the turn before is read."""
        responses: list[Text] = [dialogue[-1].text for dialogue in dialogues]
        if self.view == "alone":
            return self.encode(responses)
        before = [dialogue[-2].text if len(dialogue) > 1 else "" for dialogue in dialogues]
        if self.view == "window":
            return self.encode([(b, d[-1].text) for b, d in zip(before, dialogues, strict=True)])
        return np.concatenate([self.encode(before), self.encode(responses)], axis=1)


class FrozenLevels:
    """A `LevelScorer`: one regression for each mechanism."""

    def __init__(self, embed: Embedder, training: Sequence[Conversation]) -> None:
        self.embed = embed
        features = embed([pair.turns for pair in training])
        groups = np.unique([pair.split_key for pair in training], return_inverse=True)[1]
        self.regressions = []
        for levels in labelled_levels(training).T:
            self.regressions.append(chosen_regression(features, levels, groups))

    def levels(self, dialogues: Sequence[Dialogue]) -> Levels:
        """As `LevelScorer`."""
        features = self.embed(dialogues)
        return np.stack([fitted.predict(features) for fitted in self.regressions], axis=1).astype(
            np.int64
        )

    @property
    def parameters(self) -> int:
        """Coefficients and intercepts of the regressions."""
        return sum(r.coef_.size + r.intercept_.size for r in self.regressions)


def chosen_regression(
    features: Floats, labels: NDArray[np.int64], groups: NDArray[np.int64]
) -> LogisticRegression:
    """Fit with the strength of the best macro-F1 over three folds of whole groups."""
    search = GridSearchCV(
        LogisticRegression(class_weight="balanced", max_iter=2000),
        {"C": STRENGTHS},
        scoring="f1_macro",
        cv=GroupKFold(3),
    )
    fitted: LogisticRegression = search.fit(features, labels, groups=groups).best_estimator_
    return fitted


@dataclass(frozen=True)
class Frozen(LabelMethod):
    """`cache` is the file with the encoder's vectors; another encoder needs another file."""

    name: ClassVar = "frozen_levels"
    paper: ClassVar = "baseline of this project; no publication"
    page: ClassVar = "baselines"
    folds: ClassVar = tuple(range(FOLDS))

    cache: Path = CACHE

    def rows(self) -> dict[str, Row]:
        return {key: row for key, (_, row) in VIEWS.items()}

    @cached_property
    def encode(self) -> SentenceEncoder:
        """The encoder with the vectors that are cached already."""
        return SentenceEncoder(self.cache, self.encoder)

    def run(self, row: str, fold: int, inputs: Inputs) -> Tested:
        part = part_of(inputs.conversations, fold)
        fitted = FrozenLevels(Embedder(self.encode, VIEWS[row][0]), part.train)
        given = fitted.levels([pair.turns for pair in part.test])
        size = sum(p.numel() for p in load_backbone(encoder=self.encoder).parameters())
        sizes = size + fitted.parameters, fitted.parameters
        return Tested(by_mechanism(part.gold), by_mechanism(given), len(part.train), sizes)

    def values(self, results: Path) -> dict[str, Any]:
        return page.values(results)

    def scorer(self, row: str, training: list[Conversation]) -> FrozenLevels:
        """Fit with cached vectors; the scorer itself encodes every text."""
        scorer = FrozenLevels(Embedder(self.encode, VIEWS[row][0]), training)
        scorer.embed.encode = SentenceEncoder()
        return scorer
