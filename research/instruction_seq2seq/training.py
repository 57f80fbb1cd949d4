"""Fine-tuning an encoder-decoder on tasks, and ranking label words with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.fit.optimisation import Optimisation
from models.model.batches import seeded_random
from models.model.losses import HeadLoss
from research.instruction_seq2seq.instructions import Form, token_ids
from research.instruction_seq2seq.model import Seq2SeqClassifier
from research.instruction_seq2seq.tasks import Task
from research.resumable import optimise
from research.second_coder.items import Item

Ints = NDArray[np.int64]
Loss = Literal["generation", "cross_entropy", "focal", "ldam"]
"""`generation` is the likelihood of the right words among all words, as in pre-training; the others
compare the likelihoods of the labels' words with each other (Xu & Jiang 2024, section 5.4)."""


@dataclass(frozen=True)
class Hyperparameters:
    """Of the fine-tuning; rate as published. No epochs: the model is used as it is (zero-shot)."""

    epochs: int = 3
    inputs: int = 16
    rate: float = 5e-6
    loss: Loss = "generation"
    new_tokens: bool = False
    warm_up: float = 0.06
    seed: int = 17
    bf16: bool = False


@dataclass(frozen=True)
class Example:
    """Token ids of an input without special tokens, the place of its task, and its label."""

    ids: tuple[int, ...]
    task: int
    label: int


class Classifier:
    """Ranks the labels of several tasks with one network.

    With `new_tokens`, labels are answered with newly initialised tokens instead of their words.
    """

    def __init__(
        self,
        model: Seq2SeqClassifier,
        tasks: Sequence[Task],
        setting: str,
        form: Form,
        *,
        new_tokens: bool = False,
    ) -> None:
        self.model, self.tasks, self.setting, self.form = model, list(tasks), setting, form
        words = [task.verbalisers for task in self.tasks]
        if new_tokens:
            added = model.add_label_tokens(max(map(len, words)))
            words = [tuple(added[: len(each)]) for each in words]
        self.labels = [model.labels_of(each) for each in words]

    def examples(self, items: Sequence[Item]) -> list[Example]:
        """An example for each task and item with a label of it."""
        return [
            Example(self._ids(task, item), place, gold)
            for place, task in enumerate(self.tasks)
            for item in items
            if (gold := task.gold(item)) is not None
        ]

    def _ids(self, task: Task, item: Item) -> tuple[int, ...]:
        return tuple(token_ids(task, self.setting, item, self.form, self.model.encode))

    @torch.inference_mode()
    def read(self, examples: Sequence[Example], size: int = 16) -> Ints:
        """The label with the largest likelihood of each example."""
        self.model.eval()
        device = next(self.model.parameters()).device
        found = np.zeros(len(examples), np.int64)
        order = sorted(range(len(examples)), key=lambda n: (examples[n].task, len(examples[n].ids)))
        for place in range(len(self.tasks)):
            own = [number for number in order if examples[number].task == place]
            for start in range(0, len(own), size):
                chosen = own[start : start + size]
                ids, mask = self.model.batch([examples[number].ids for number in chosen])
                scores = self.model(ids.to(device), mask.to(device), self.labels[place])
                found[chosen] = scores.argmax(-1).cpu().numpy()
        return found


def counts_of(classifier: Classifier, examples: Sequence[Example]) -> list[Tensor]:
    """Examples of each label by task."""
    found = [torch.zeros(len(labels)) for labels in classifier.labels]
    for example in examples:
        found[example.task][example.label] += 1
    return found


def batches_of(examples: Sequence[Example], size: int, *parts: object) -> Iterator[list[Example]]:
    """Batches of one task and of similar lengths in random order, determined by `parts`."""
    chance = seeded_random(*parts)
    order = chance.sample(list(examples), len(examples))
    order.sort(key=lambda example: (example.task, len(example.ids) // 32))
    found: list[list[Example]] = []
    for example in order:
        if not found or len(found[-1]) == size or found[-1][0].task != example.task:
            found.append([])
        found[-1].append(example)
    chance.shuffle(found)
    yield from found


def fine_tune(
    classifier: Classifier,
    examples: Sequence[Example],
    chosen: Hyperparameters,
    checkpoint: Path | None = None,
) -> None:
    """Train in place, on an accelerator if there is one, from the checkpoint if there is one."""
    if not chosen.epochs:
        return
    model = classifier.model
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    place = torch.device(device or "cpu")
    model.to(place)
    losses = [
        HeadLoss("cross_entropy" if chosen.loss == "generation" else chosen.loss, counts).to(place)
        for counts in counts_of(classifier, examples)
    ]
    optimiser = torch.optim.AdamW(model.parameters(), lr=chosen.rate, weight_decay=0.01)
    epoch_steps = len(list(batches_of(examples, chosen.inputs)))
    optimisation = Optimisation(model, optimiser, chosen.epochs * epoch_steps, chosen.warm_up)

    def batches(epoch: int) -> Iterator[list[Example]]:
        return batches_of(examples, chosen.inputs, chosen.seed, "seq2seq", epoch)

    def loss(members: list[Example]) -> Tensor:
        ids, mask = (part.to(place) for part in model.batch([each.ids for each in members]))
        labels = classifier.labels[members[0].task]
        gold = [each.label for each in members]
        with torch.autocast(place.type, torch.bfloat16, enabled=chosen.bf16):
            if chosen.loss == "generation":
                own = [labels[label] for label in gold]
                return -model.gold(ids, mask, own).sum() / sum(map(len, own))
            scores = model(ids, mask, labels)
        target = torch.eye(len(labels), device=place)[gold]
        found: Tensor = losses[members[0].task](scores, target)
        return found

    model.train()
    optimise(optimisation, batches, loss, chosen.seed, checkpoint)
    model.eval()
