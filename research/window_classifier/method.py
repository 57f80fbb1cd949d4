"""Windows of turns as one text (Xu & Jiang 2024), trained and tested on our folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from models.data import Conversation
from models.data.split import held_out, split_fold
from models.labels import STRATEGIES
from models.model.batches import seeded_random
from models.model.encoder import load_tokenizer
from models.pages import report
from models.probes.scorers import Dialogue, Levels
from research.fine_tuning import Hyperparameters, parameters_of
from research.folds import FOLDS, SEED
from research.label_method import Ints, LabelMethod, Tested
from research.method import Inputs, MethodError, Row, Run
from research.window_classifier import page
from research.window_classifier.design import PLANNED, Design, design_of
from research.window_classifier.model import build
from research.window_classifier.training import Fitted, fit
from research.window_classifier.windows import Example, Windows

Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
REST = "others"
"""The strategy that is no task of its own in the paper."""


@dataclass(frozen=True)
class WindowMethod(Hyperparameters, LabelMethod):
    """`share` and `test_share` are those of a fold's conversations; published: 30 epochs."""

    name: ClassVar = page.NAME
    paper: ClassVar = "Xu & Jiang 2024, section 4.2 and Tables 5 and 6"
    page: ClassVar = "window-classifier"

    epochs: int = 2
    share: Share = 1.0
    test_share: Share = 1.0

    def rows(self) -> dict[str, Row]:
        return {design.key: row_of(design) for design in PLANNED}

    def row(self, key: str) -> Row:
        """A row that is not planned is made from its name."""
        try:
            return row_of(design_of(key))
        except ValueError as problem:
            raise MethodError(str(problem)) from None

    def run(self, row: str, fold: int, inputs: Inputs) -> Tested:
        design = design_of(row)
        own = [each for each in inputs.conversations if each.corpus == design.corpus]
        train = part_of(split_fold(own, fold, FOLDS, SEED)["train"], self.share, "train")
        test = part_of(held_out(own, fold, FOLDS, SEED), self.test_share, "test")
        fitted = fit(train, design, self, self.encoder, inputs.checkpoints)
        examples = fitted.windows.examples(test)
        return Tested(
            dict(zip(design.heads, gold_of(examples).T, strict=True)),
            dict(zip(design.heads, fitted.read(examples).T, strict=True)),
            len(fitted.windows.examples(train)),
            parameters_of(fitted.model),
        )

    def figures(self, row: str, runs: Sequence[Run]) -> dict[str, Any]:
        """Adds those of the paper's seven tasks, if strategies are learned."""
        found = super().figures(row, runs)
        if "strategy" in found["heads"]:
            parts = [(run.found.gold["strategy"], run.found.given["strategy"]) for run in runs]
            found["tasks"] = task_figures([g for g, _ in parts], [a for _, a in parts])
        return found

    def values(self, results: Path) -> dict[str, Any]:
        return page.values(results)

    def scorer(self, row: str, training: list[Conversation]) -> WindowLevels:
        """A row's network before training."""
        del training
        design = design_of(row)
        return WindowLevels(Fitted(build(design.heads).eval(), Windows(load_tokenizer(), design)))


class WindowLevels:
    """A `LevelScorer` of EPITOME's levels; a dialogue's last turn is the target."""

    def __init__(self, fitted: Fitted) -> None:
        self.fitted = fitted

    def levels(self, dialogues: Sequence[Dialogue]) -> Levels:
        """As `LevelScorer`."""
        examples = [self.fitted.windows.example(turns, len(turns) - 1) for turns in dialogues]
        return self.fitted.read(examples)


def row_of(design: Design) -> Row:
    """A design as a row; EPITOME's levels are compared with other methods."""
    levels = design.task == "levels"
    return Row(design.words, design.context, compared=levels, scored=levels)


def part_of(conversations: Sequence[Conversation], share: float, part: str) -> list[Conversation]:
    """A share of the conversations, drawn by split key; a larger share contains a smaller one."""
    return [
        each
        for each in conversations
        if seeded_random("share", SEED, part, each.split_key).random() < share
    ]


def gold_of(examples: Sequence[Example]) -> Ints:
    """Labelled classes, [examples, heads]."""
    return np.array([[int(np.argmax(row)) for row in each.labels] for each in examples], np.int64)


def task_figures(gold: Sequence[Ints], given: Sequence[Ints]) -> dict[str, Any]:
    """Means over the seven strategies, each read as a yes-or-no task (one against the rest)."""
    rows = [
        report.over_folds(
            [report.binary_figures(g == i, a == i) for g, a in zip(gold, given, strict=True)],
            report.binary_figures(np.concatenate(gold) == i, np.concatenate(given) == i),
        )
        for i, strategy in enumerate(STRATEGIES)
        if strategy != REST
    ]
    return report.mean_of_rows(rows)
