"""Transfer from every empathy task to every other one, and what predicts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from models.pages.report import rounded
from research.method import Content, Inputs, Method, MethodError, Row, Run
from research.sentence_vectors import CORPORA_CACHE, SentenceEncoder
from research.transfer import page
from research.transfer.importance import features, importances
from research.transfer.items import Data, load
from research.transfer.pairs import all_pairs
from research.transfer.stack import Training
from research.transfer.tasks import BY_NAME, at_hand

VECTORS = "vectors"
INSIDE_EPOCHS = 6
"""Epochs of adapters inside the encoder."""


@dataclass(frozen=True)
class Transfers(Method):
    """`source` and `target` are the tasks of adapters inside the encoder.

    `cache` is the file with the encoder's vectors; another encoder needs another file.
    """

    name: ClassVar = page.NAME
    paper: ClassVar = "Lahnala et al., The Muddy Waters of Modeling Empathy, sections 3-5"
    page: ClassVar = "transfer"
    over_folds: ClassVar = False

    source: tuple[str, ...] = ("Epitome EX",)
    target: tuple[str, ...] = ("Epitome ER",)
    most_train: int = 1200
    most_test: int = 600
    epochs: int | None = None
    encoder: str | None = None
    cache: Path = CORPORA_CACHE
    bf16: bool = True

    def rows(self) -> dict[str, Row]:
        return {
            VECTORS: Row("adapters on frozen sentence vectors, all pairs of tasks"),
            "bottleneck": Row("adapters inside the encoder, some pairs"),
            "lora": Row("LoRA inside the encoder, some pairs"),
        }

    def run(self, row: str, fold: int, inputs: Inputs) -> Any:
        if row == VECTORS:
            return self.all_pairs(fold, inputs)
        from research.transfer import layers  # noqa: PLC0415  (needs peft)

        sources, targets = (self.tasks(names, fold, inputs) for names in (self.source, self.target))
        kind: layers.Kind = "lora" if row == "lora" else "bottleneck"
        return layers.run(sources, targets, kind, self.epochs or INSIDE_EPOCHS, self.encoder)

    def all_pairs(self, fold: int, inputs: Inputs) -> Content:
        """Figures of every pair of tasks, and what predicts them."""
        epochs = self.epochs or Training.epochs
        tasks = self.tasks([task.name for task in at_hand()], fold, inputs)
        encode = SentenceEncoder(self.cache, self.encoder, bf16=self.bf16)
        found = all_pairs(tasks, encode, Training(epochs=epochs))
        _, groups, changes = features(found)
        return found | {
            "fold": fold,
            "epochs": epochs,
            "importance": importances(groups, changes),
        }

    def tasks(self, names: Sequence[str], fold: int, inputs: Inputs) -> list[Data]:
        """The tasks' parts in one fold.

        Raises:
            MethodError: there is no such task, or its corpus is not at hand.
        """
        if unknown := set(names) - set(BY_NAME):
            raise MethodError(f"no task {', '.join(sorted(unknown))}")
        most = self.most_train, self.most_test
        try:
            return [
                load(BY_NAME[name], inputs.conversations, inputs.folder, fold, most)
                for name in names
            ]
        except ValueError as problem:
            raise MethodError(str(problem)) from problem

    def stored(self, content: Content, row: str, runs: Sequence[Run]) -> Content:
        """Replace all pairs, or the remeasured ones of the adapters inside the encoder."""
        (run,) = runs
        known = content.get("layers", [])
        if row == VECTORS:
            return {**rounded(run.found, 4), "layers": known}
        new = [(row, each["source"], each["target"]) for each in run.found]
        others = [e for e in known if (e["kind"], e["source"], e["target"]) not in new]
        return content | {"layers": [*others, *rounded(run.found)]}

    def values(self, results: Path) -> dict[str, Any] | None:
        return page.values(results)
