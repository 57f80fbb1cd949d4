"""Every task as an intermediate of every other one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from research.sentence_vectors import SentenceEncoder
from research.transfer.items import Data
from research.transfer.scores import p_value, score
from research.transfer.stack import Floats, Training, fit, predicted, task_embedding, vectors_of

SIGNIFICANT = 0.05
HALF = 0.5


@dataclass(frozen=True)
class Transfer:
    """Effect of one intermediate task on one target.

    `base` and `score` are the target's score (macro-F1, or Pearson's r) without and with the
    intermediate task, `p` tests their difference; `half_score` uses half of the target's training
    items and `half_p` compares that with `base`, which has all of them.
    """

    source: str
    target: str
    base: float
    score: float
    p: float
    half_score: float
    half_p: float

    @property
    def change(self) -> float:
        """Improvement over the baseline in per cent of it (0 for a baseline of 0)."""
        return 100 * (self.score - self.base) / abs(self.base) if self.base else 0.0


def verdict(difference: float, p: float) -> str:
    """`better`, `worse` or `same`, significant at 5 %."""
    if p >= SIGNIFICANT:
        return "same"
    return "better" if difference > 0 else "worse"


def all_pairs(tasks: Sequence[Data], encode: SentenceEncoder, chosen: Training) -> dict[str, Any]:
    """Baselines, transfers, and the similarities of data sets and tasks, both [tasks, tasks]."""
    vectors = [vectors_of(data, encode) for data in tasks]
    stacks = [fit(given, chosen) for given in vectors]
    base = [predicted(stack, given) for stack, given in zip(stacks, vectors, strict=True)]
    found: list[Transfer] = []
    for target, (data, given) in enumerate(zip(tasks, vectors, strict=True)):
        gold, classes = given.test_labels, given.classes
        before = score(gold, base[target], classes)
        for source, other in enumerate(tasks):
            if source == target:
                continue
            below = stacks[source].adapter
            full = predicted(fit(given, chosen, below), given)
            half = predicted(fit(given, chosen, below, HALF), given)
            found.append(
                Transfer(
                    other.task.name,
                    data.task.name,
                    before,
                    score(gold, full, classes),
                    p_value(gold, base[target], full, classes),
                    score(gold, half, classes),
                    p_value(gold, base[target], half, classes),
                )
            )
        print(f"{data.task.name}: baseline {before:.3f}", flush=True)
    means = np.stack([given.train.mean(0).numpy() for given in vectors])
    embeddings = [task_embedding(s, given) for s, given in zip(stacks, vectors, strict=True)]
    return {
        "tasks": [size_of(data) for data in tasks],
        "baselines": {
            data.task.name: score(given.test_labels, own, given.classes)
            for data, given, own in zip(tasks, vectors, base, strict=True)
        },
        "transfers": [asdict(each) for each in found],
        "data_similarity": cosines(means).tolist(),
        "task_similarity": fused(embeddings).tolist(),
    }


def size_of(data: Data) -> dict[str, Any]:
    """Numbers of items, tokens (words), distinct words and labels of a task's training part."""
    words = [word for text in data.train.texts for word in text.lower().split()]
    return {
        "name": data.task.name,
        "train": len(data.train.texts),
        "test": len(data.test.texts),
        "words": len(words),
        "vocabulary": len(set(words)),
        "labels": data.classes,
    }


def cosines(rows: Floats) -> Floats:
    """Cosine of every pair of rows, [rows, rows]."""
    units = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    found: Floats = units @ units.T
    return found


def fused(embeddings: Sequence[dict[str, Floats]], constant: int = 60) -> Floats:
    """Reciprocal rank fusion of the similarity by component (Cormack et al. 2009), [tasks, tasks].

    Row t ranks all tasks by their similarity to t; the diagonal is the largest of its row.
    """
    total = np.zeros((len(embeddings), len(embeddings)))
    for name in embeddings[0]:
        similar = cosines(np.stack([each[name] for each in embeddings]))
        np.fill_diagonal(similar, np.inf)
        ranks = (-similar).argsort(1, kind="stable").argsort(1) + 1
        total += 1 / (constant + ranks)
    return total
