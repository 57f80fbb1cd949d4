"""Train and test one row, and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models.data import Conversation
from models.data.split import held_out, split_fold
from models.labels import STRATEGIES
from models.model.batches import seeded_random
from models.model.encoder import encoder_name
from models.pages import report
from research.fine_tuning import Hyperparameters, parameters_of
from research.folds import FOLDS, SEED
from research.window_classifier.design import Design
from research.window_classifier.training import Ints, fit
from research.window_classifier.windows import Example

REST = "others"
"""The strategy that is no task of its own in the paper."""


@dataclass(frozen=True)
class Amount:
    """Shares of the conversations of a fold that train and that are tested."""

    train: float = 1.0
    test: float = 1.0


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


def row_of(
    design: Design,
    conversations: Sequence[Conversation],
    folds: Sequence[int],
    amount: Amount,
    chosen: Hyperparameters,
    encoder: str | None = None,
    checkpoints: Path | None = None,
) -> dict[str, Any]:
    """Train and test a design on each fold."""
    own = [each for each in conversations if each.corpus == design.corpus]
    gold, given, turns = [], [], []
    sizes = 0, 0
    for fold in folds:
        train = part_of(split_fold(own, fold, FOLDS, SEED)["train"], amount.train, "train")
        test = part_of(held_out(own, fold, FOLDS, SEED), amount.test, "test")
        print(f"fold {fold}: {len(train)} conversations, {design.key}", flush=True)
        fitted = fit(train, design, chosen, encoder, checkpoints)
        examples = fitted.windows.examples(test)
        gold.append(gold_of(examples))
        given.append(fitted.read(examples))
        turns.append(len(fitted.windows.examples(train)))
        sizes = parameters_of(fitted.model)
    heads = {
        head: report.labels_over_folds(head, [g[:, i] for g in gold], [a[:, i] for a in given])
        for i, head in enumerate(design.heads)
    }
    row = {
        "words": design.words,
        "context": design.context,
        "encoder": encoder_name(encoder),
        "parameters": sizes[0],
        "trained": sizes[1],
        "folds": list(folds),
        "share": asdict(amount),
        "turns": turns,
        "tested": [len(each) for each in gold],
        "setting": asdict(chosen),
        "heads": heads,
    }
    if "strategy" in design.heads:
        column = design.heads.index("strategy")
        row["tasks"] = task_figures([g[:, column] for g in gold], [a[:, column] for a in given])
    return row
