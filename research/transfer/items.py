"""The items of each task at hand: context, text, label and fold, from the project's corpora."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.data import Conversation
from models.data.corpora import Corpus, Turn, read_rows
from models.data.dialogues import CHATS
from models.data.split import fold_of
from models.labels import COUNSELLOR
from models.model.batches import seeded_random
from research.folds import FOLDS, SEED
from research.transfer.tasks import Task

NEWS = Corpus(
    "news_reactions",
    "Empathic Reactions (Buechel et al. 2018)",
    ("news_reactions.jsonl.gz",),
    "https://github.com/wwbp/empathic_reactions",
    "CC BY 4.0",
)


@dataclass(frozen=True)
class Item:
    """A text, the turn before it ("" for essays), a class or rating, and what must not be split."""

    context: str
    text: str
    label: float
    group: str
    fixed: str | None = None
    """The part that the corpus itself defines, "train" or "test"; None: by fold."""


@dataclass(frozen=True)
class Part:
    """Items of one part of a task: texts, contexts, and labels [n] (int64 or float64)."""

    contexts: list[str]
    texts: list[str]
    labels: NDArray[Any]

    def first(self, count: int) -> Part:
        """The first `count` items."""
        return Part(self.contexts[:count], self.texts[:count], self.labels[:count])


@dataclass(frozen=True)
class Data:
    """A task's training and test part in one fold; `classes` is 0 for regression."""

    task: Task
    train: Part
    test: Part
    classes: int


Loader = Callable[[list[Conversation], Path], Iterable[Item]]


def _of_head(corpus: str, head: str) -> Loader:
    """Turns labelled for a head, with the turn before."""

    def load(conversations: list[Conversation], data_dir: Path) -> Iterator[Item]:
        del data_dir
        for item in conversations:
            if item.corpus != corpus:
                continue
            before = Turn(1 - COUNSELLOR, "")
            for turn in item.turns:
                if head in turn.labels:
                    label = float(np.argmax(turn.labels[head]))
                    group = f"{item.corpus}:{item.split_key}"
                    yield Item(before.text, turn.text, label, group, item.part)
                before = turn

    return load


def _exchanges(conversations: list[Conversation], data_dir: Path) -> Iterator[Item]:
    """Ratings of empathy, 1-5."""
    del data_dir
    for item in conversations:
        if item.corpus == "empathetic_exchanges":
            for before, turn in zip(item.turns[::2], item.turns[1::2], strict=True):
                rating = 1 + 4 * turn.labels["empathy"][1]
                yield Item(before.text, turn.text, rating, f"{item.corpus}:{item.split_key}")


def _chats(pick: Callable[[dict[str, Any]], Iterable[tuple[str, str, str]]], most: int) -> Loader:
    """A sample of EmpatheticDialogues; `pick` yields (context, text, label's name)."""

    def load(conversations: list[Conversation], data_dir: Path) -> Iterator[Item]:
        del conversations
        rows = list(read_rows(CHATS, CHATS.files[0], data_dir))
        rows = seeded_random("transfer", SEED).sample(rows, min(most, len(rows)))
        found = [(row, picked) for row in rows for picked in pick(row)]
        names = sorted({name for _, (_, _, name) in found})
        for row, (context, text, name) in found:
            yield Item(context, text, float(names.index(name)), f"chats:{row['conversation_id']}")

    return load


def _emotion(row: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    yield "", row["utterances"][0]["text"], row["emotion"]


def _roles(row: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The turn alone tells little, so its context is read as well."""
    said = row["utterances"]
    for before, turn in itertools.pairwise(said[1:4]):
        yield before["text"], turn["text"], turn["speaker"]


def _news(column: str) -> Loader:
    """Essays with the writer's own ratings, 1-7; essays on one article stay together."""

    def load(conversations: list[Conversation], data_dir: Path) -> Iterator[Item]:
        del conversations
        for row in read_rows(NEWS, NEWS.files[0], data_dir):
            yield Item("", row["essay"], float(row[column]), f"news:{row['article_id']}")

    return load


CHATS_READ = 1500
LOADERS: dict[str, Loader] = {
    "epitome_er": _of_head("epitome", "emotional_reactions"),
    "epitome_ip": _of_head("epitome", "interpretations"),
    "epitome_ex": _of_head("epitome", "explorations"),
    "intents": _of_head("empathetic_intents", "empathic_intent"),
    "emotions": _chats(_emotion, CHATS_READ),
    "roles": _chats(_roles, CHATS_READ // 2),
    "news_empathy": _news("empathy"),
    "news_distress": _news("distress"),
    "behaviour": _of_head("annomi", "behaviour"),
    "exchanges": _exchanges,
    "strategy": _of_head("esconv", "strategy"),
}


def load(
    task: Task, conversations: list[Conversation], data_dir: Path, fold: int, most: Sequence[int]
) -> Data:
    """A task's parts in one fold, at most `most` = (training, test) items, in an order by hash.

    Raises ValueError for a task whose corpus is not at hand.
    """
    if task.loader is None:
        message = f"the corpus of {task.name} is not among the project's: {task.publisher}"
        raise ValueError(message)
    items = list(LOADERS[task.loader](conversations, data_dir))
    seeded_random("transfer", task.name, SEED).shuffle(items)
    train, test = [], []
    for item in items:
        own = fold_of(item.group, SEED, FOLDS) == fold
        if item.fixed == "train" or (item.fixed is None and not own):
            train.append(item)
        elif own or item.fixed == "test":
            test.append(item)
    regression = task.kind == "regression"
    classes = 0 if regression else 1 + int(max(item.label for item in items))
    train_part, test_part = _part(train[: most[0]], regression), _part(test[: most[1]], regression)
    return Data(task, train_part, test_part, classes)


def _part(items: list[Item], regression: bool) -> Part:
    labels = np.array([item.label for item in items], np.float64 if regression else np.int64)
    return Part([item.context for item in items], [item.text for item in items], labels)
