"""`python -m models.evaluate.baselines`: model-free baselines on the evaluation's folds.

Two rows for every task: the most frequent label of the test items, and a logistic regression on the
words of the turn alone (tf-idf, `models.evaluate.text_baseline`), fitted on the other folds. Both
are tested on the same items as the models. Writes docs/evaluation/baselines.json; needs the corpora
but no trained model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from models.data import Conversation, esconv, load_for_command
from models.data.split import held_out, split_fold
from models.evaluate.text_baseline import regression_on_words
from models.fit.calibrate import TASKS
from models.labels import HEADS, RATED
from models.pages import document
from models.pages.report import (
    binary_figures,
    labels_over_folds,
    mean_of_rows,
    over_folds,
    rating_figures,
    rounded,
)

FOLDS, SEED = 5, 17
HIGH = 3
"""Label of a rating of 4: answers from here on count as highly rated."""
NONE_OF_THE_TASKS = len(TASKS)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Items:
    """The labelled turns of one head: text, label (the most frequent vote) and conversation, [n].

    `failed` marks turns of ESConv's failed chats.
    """

    texts: NDArray[np.str_]
    labels: Ints
    conversation: Ints
    failed: NDArray[np.bool_]

    @property
    def words(self) -> Ints:
        """Number of words of each text, [n]."""
        return np.array([len(text.split()) for text in self.texts], dtype=np.int64)


@dataclass(frozen=True)
class Split:
    """One fold's training and test items of a head."""

    train: Items
    test: Items


def items_of(head: str, conversations: Iterable[Conversation]) -> Items:
    """Collect the turns labelled for a head; a rating of 1-5 is the label 0-4."""
    found = [
        (turn.text, _label(head, turn.labels[head]), number, esconv.has_failed(item))
        for number, item in enumerate(conversations)
        for turn in item.turns
        if head in turn.labels
    ]
    texts, labels, numbers, failed = zip(*found, strict=True) if found else ((), (), (), ())
    return Items(
        np.array(texts, dtype=np.str_),
        np.array(labels, dtype=np.int64),
        np.array(numbers, dtype=np.int64),
        np.array(failed, dtype=bool),
    )


def _label(head: str, distribution: tuple[float, ...]) -> int:
    return round(4 * distribution[1]) if head == RATED else int(np.argmax(distribution))


def splits_of(
    head: str, conversations: list[Conversation], folds: int = FOLDS, seed: int = SEED
) -> list[Split]:
    """Every fold's training and test items of a head."""
    return [
        Split(
            items_of(head, split_fold(conversations, number, folds, seed)["train"]),
            items_of(head, held_out(conversations, number, folds, seed)),
        )
        for number in range(folds)
    ]


def majority(splits: list[Split]) -> list[Ints]:
    """For every test item, the most frequent label over the test items of all folds."""
    tests = [split.test.labels for split in splits]
    commonest = np.bincount(np.concatenate(tests)).argmax()
    return [np.full(len(labels), commonest, dtype=np.int64) for labels in tests]


def words(splits: list[Split]) -> list[Ints]:
    """For every test item, the most probable label by its words."""
    answers = []
    for split in splits:
        learned = regression_on_words().fit(split.train.texts, split.train.labels)
        answers.append(np.asarray(learned.predict(split.test.texts), dtype=np.int64))
    return answers


def high_ratings(splits: list[Split]) -> list[Floats]:
    """For every test item, the log-odds of a rating of 4 or 5 by its words."""
    answers = []
    for split in splits:
        learned = regression_on_words().fit(split.train.texts, split.train.labels >= HIGH)
        answers.append(np.asarray(learned.decision_function(split.test.texts), dtype=np.float64))
    return answers


def head_rows(head: str, splits: list[Split], given: dict[str, list[Ints]]) -> dict[str, Any]:
    """Figures of a head by baseline."""
    gold = [split.test.labels for split in splits]
    return {name: labels_over_folds(head, gold, answers) for name, answers in given.items()}


def strategy_tasks(splits: list[Split], given: list[Ints]) -> dict[str, Any]:
    """The seven binary tasks, without the turns of failed chats (`report.strategies`).

    In every task "no" is the more frequent answer, so the majority row never predicts "yes".
    """
    gold = [split.test.labels[~split.test.failed] for split in splits]
    answers = [own[~split.test.failed] for split, own in zip(splits, given, strict=True)]
    tasks = {
        task: over_folds(
            [binary_figures(g == i, a == i) for g, a in zip(gold, answers, strict=True)],
            binary_figures(np.concatenate(gold) == i, np.concatenate(answers) == i),
        )
        for i, task in enumerate(TASKS)
    }
    return {"tasks": tasks, "mean": mean_of_rows(list(tasks.values()))}


def rating_rows(splits: list[Split]) -> dict[str, Any]:
    """Rank correlation of rated empathy with the answer's words and with its length."""
    tests = [split.test for split in splits]
    ratings = [test.labels.astype(float) for test in tests]
    lengths = [test.words for test in tests]
    groups = [test.conversation for test in tests]
    by_words = rating_figures(high_ratings(splits), ratings, lengths, groups)
    by_length = rating_figures([own.astype(float) for own in lengths], ratings, lengths, groups)
    return {"words": by_words, "length": by_length | {"same_length": None}}


def report(
    conversations: list[Conversation], folds: int = FOLDS, seed: int = SEED
) -> dict[str, Any]:
    """All baselines of all heads with turn labels."""
    content: dict[str, Any] = {"folds": list(range(folds)), "of": folds, "seed": seed}
    content |= {"heads": {}, "counts": {}}
    for head in HEADS:
        if head.corpus == "outcomes":
            continue
        splits = splits_of(head.name, conversations, folds, seed)
        if any(not len(part.labels) for split in splits for part in (split.train, split.test)):
            continue
        print(f"{head.name}: {sum(len(split.test.labels) for split in splits)} items", flush=True)
        if head.name == RATED:
            content["ratings"] = rating_rows(splits)
            continue
        labels = np.concatenate([split.test.labels for split in splits])
        content["counts"][head.name] = np.bincount(labels, minlength=len(head.labels)).tolist()
        given = {"majority": majority(splits), "words": words(splits)}
        content["heads"][head.name] = head_rows(head.name, splits, given)
        if head.name == "strategy":
            never = [np.full_like(split.test.labels, NONE_OF_THE_TASKS) for split in splits]
            content["strategies"] = {
                "majority": strategy_tasks(splits, never),
                "words": strategy_tasks(splits, given["words"]),
            }
    return dict(rounded(content))


def main(
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="Output folder.")] = document.FOLDER,
) -> None:
    """Measure the baselines and rewrite the page."""
    content = report(load_for_command(data_dir))
    out.mkdir(parents=True, exist_ok=True)
    document.write_json(out / "baselines.json", content)
    print(document.write(out))


if __name__ == "__main__":
    typer.run(main)
