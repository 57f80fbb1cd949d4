"""Fine-tune and test one model on a codebook's tasks, and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import precision_recall_fscore_support

from models.model.batches import seeded_random
from models.pages import report
from research.folds import SEED
from research.instruction_seq2seq.instructions import Form
from research.instruction_seq2seq.model import Seq2SeqClassifier
from research.instruction_seq2seq.tasks import Task
from research.instruction_seq2seq.training import Classifier, Hyperparameters, Ints, fine_tune
from research.resumable import checkpoint_of
from research.second_coder.codebook import Codebook
from research.second_coder.items import Item


@dataclass(frozen=True)
class Fold:
    """Items of a fold's training and test part."""

    number: int
    train: list[Item]
    test: list[Item]

    def reduced(self, train: float, test: float) -> Fold:
        """A share of the sessions of either part, by their names."""
        return Fold(
            self.number, _share(self.train, train, "train"), _share(self.test, test, "test")
        )


def _share(items: Sequence[Item], share: float, part: str) -> list[Item]:
    return [i for i in items if seeded_random("share", SEED, part, i.session).random() < share]


def figures(gold: Ints, given: Ints) -> dict[str, float]:
    """Macro precision, recall and F1 (section 5.3), accuracy and Matthews correlation."""
    precision, recall, _, _ = precision_recall_fscore_support(
        gold, given, average="macro", zero_division=0.0
    )
    return report.classification(gold, given) | {
        "precision": float(precision),
        "recall": float(recall),
    }


@dataclass(frozen=True)
class Tested:
    """Labelled and given answers of a fold's test part, and training inputs, by task."""

    gold: dict[str, Ints]
    given: dict[str, Ints]
    trained: dict[str, int]
    parameters: int


def run(
    name: str,
    book: Codebook,
    tasks: Sequence[Task],
    fold: Fold,
    form: Form,
    chosen: Hyperparameters,
    *,
    joint: bool = False,
    checkpoints: Path | None = None,
) -> Tested:
    """Fine-tune and test on a fold: one network for each task, or a `joint` one for all."""
    gold: dict[str, Ints] = {}
    answers: dict[str, Ints] = {}
    trained: dict[str, int] = {}
    parameters = 0
    for group in [list(tasks)] if joint else [[task] for task in tasks]:
        torch.manual_seed(chosen.seed)
        model = Seq2SeqClassifier.load(name)
        classifier = Classifier(model, group, book.setting, form, new_tokens=chosen.new_tokens)
        examples = classifier.examples(fold.train)
        words = ", ".join(task.name for task in group)
        print(f"fold {fold.number}: {len(examples)} inputs, {words}", flush=True)
        checkpoint = checkpoints and checkpoint_of(
            "instruction_seq2seq", name, chosen, examples, folder=checkpoints
        )
        fine_tune(classifier, examples, chosen, checkpoint)
        test = classifier.examples(fold.test)
        given = classifier.read(test)
        parameters = model.parameters_in_all
        for place, task in enumerate(group):
            own = [n for n, example in enumerate(test) if example.task == place]
            gold[task.name] = np.array([test[n].label for n in own], np.int64)
            answers[task.name] = given[own]
            trained[task.name] = sum(example.task == place for example in examples)
    return Tested(gold, answers, trained, parameters)


def by_task(folds: Sequence[Tested]) -> dict[str, dict[str, Any]]:
    """Figures of each task over the folds."""
    found = {}
    for name in folds[0].gold:
        gold, given = [each.gold[name] for each in folds], [each.given[name] for each in folds]
        found[name] = {
            "trained": [each.trained[name] for each in folds],
            "tested": [len(labels) for labels in gold],
            **report.over_folds(
                [figures(g, a) for g, a in zip(gold, given, strict=True)],
                figures(np.concatenate(gold), np.concatenate(given)),
            ),
        }
    return found


def key_of(row: dict[str, Any]) -> str:
    """A row's name in the result file: whatever an ablation changes."""
    setting = row["setting"]
    return "/".join(
        [
            row["model"],
            row["book"],
            f"instruction: {row['instruction']}",
            f"{row['before']}-{row['after']}",
            setting["loss"],
            f"{setting['epochs']} epochs",
            "joint" if row["joint"] else "one for each task",
            "new tokens" if setting["new_tokens"] else "words",
        ]
    )
