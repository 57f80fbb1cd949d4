"""Run a model over segments and collect the inputs of the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from models.data.corpora import Turn
from models.labels import HEADS, RATIONALE_ORDER
from models.model.batches import Segment, Step, Window, collate, overlaps, seeded_random
from models.model.multitask import MultitaskModel
from stream_app.inference.rationale import sentence_scores, sentences

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
SEGMENTS_A_STEP = 8
TOKEN_ARRAYS = ("probabilities", "gold", "sentences")


class Scorer(Protocol):
    """Scores a step: logits by head, and rationale logits [n, tokens, 3] by encoder chunk."""

    def __call__(self, step: Step) -> tuple[dict[str, Tensor], list[Tensor]]: ...


@dataclass
class HeadOutputs:
    """Logits and target distributions of one head, both [n, labels]."""

    logits: Floats
    target: Floats

    @property
    def gold(self) -> Ints:
        """The label that most annotators chose, [n]."""
        return np.asarray(self.target.argmax(-1))

    @property
    def predicted(self) -> Ints:
        """The most likely label, [n]."""
        return np.asarray(self.logits.argmax(-1))

    def probabilities(self, temperature: float = 1.0) -> Floats:
        """Softmax of the logits divided by the temperature, [n, labels]."""
        return softmax(self.logits / temperature)


def softmax(logits: Floats) -> Floats:
    """Softmax over the last axis."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


@dataclass(eq=False)
class RationaleOutput:
    """One mechanism's rationale in one response: probability, gold mask and sentence of its tokens.

    All tokens of the response count; those beyond the encoder's length have probability 0. `row` is
    the response's row in the mechanism's head.
    """

    probabilities: Floats
    gold: Ints
    sentences: Ints
    row: int

    @cached_property
    def scores(self) -> Floats:
        """Each token's sentence score, computed from the encoded tokens as in the service."""
        scores = np.zeros(len(self.gold))
        read = self.probabilities > 0
        scores[read] = sentence_scores(self.probabilities[read], self.sentences[read])
        return scores


@dataclass
class Predictions:
    """Outputs by head on its labelled turns, and rationale outputs by mechanism.

    `everywhere` has each head's logits [turns, labels] on all turns of the head's role, labelled or
    not, as in the service.
    """

    heads: dict[str, HeadOutputs]
    rationales: dict[str, list[RationaleOutput]] = field(default_factory=dict)
    everywhere: dict[str, Floats] = field(default_factory=dict)


@torch.inference_mode()
def predict(
    scorer: Scorer, segments: list[Segment], window: Window, tokenizer: Tokenizer
) -> Predictions:
    """Predict every labelled turn of the segments, seen through the given window."""
    gathered = _Gathered(tokenizer)
    for members, step in _steps(segments, window):
        gathered.add(members, step, *scorer(step))
    return gathered.predictions()


@torch.inference_mode()
def predict_views(
    model: MultitaskModel,
    segments: list[Segment],
    windows: dict[str, Window],
    tokenizer: Tokenizer,
) -> dict[str, Predictions]:
    """As `predict`, through several windows; every turn is encoded once for all of them."""
    gathered = {view: _Gathered(tokenizer) for view in windows}
    steps = {view: _steps(segments, window) for view, window in windows.items()}
    for together in zip(*steps.values(), strict=True):
        _, first = together[0]
        vectors, rationale_logits = model.encode(first.chunks, first.turns)
        for view, (members, step) in zip(steps, together, strict=True):
            gathered[view].add(members, step, model.score(vectors, step.targets), rationale_logits)
    return {view: items.predictions() for view, items in gathered.items()}


def _steps(segments: list[Segment], window: Window) -> Iterator[tuple[list[Segment], Step]]:
    chance = seeded_random("prediction")
    for start in range(0, len(segments), SEGMENTS_A_STEP):
        members = segments[start : start + SEGMENTS_A_STEP]
        step = collate(members, window, chance, chunk_tokens=1024)
        if len(step.targets.turn):
            yield members, step


class _Gathered:
    """Outputs accumulated over steps."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.logits: dict[str, list[Tensor]] = {head.name: [] for head in HEADS}
        self.targets: dict[str, list[Tensor]] = {head.name: [] for head in HEADS}
        self.everywhere: dict[str, list[Tensor]] = {head.name: [] for head in HEADS}
        self.rationales: dict[str, list[RationaleOutput]] = {name: [] for name in RATIONALE_ORDER}
        self.counts = dict.fromkeys(self.logits, 0)

    def add(
        self,
        members: list[Segment],
        step: Step,
        logits: dict[str, Tensor],
        rationale_logits: list[Tensor],
    ) -> None:
        turns = [turn.turn for segment in members for turn in segment.turns]
        row_of = {int(turn): row for row, turn in enumerate(step.targets.turn)}
        for name, index, output in self._rationales(step, turns, rationale_logits):
            rows, _ = step.targets.labels[name]
            place = int((rows == row_of[index]).nonzero())
            output.row = self.counts[name] + place
            self.rationales[name].append(output)
        for head in HEADS:
            if head.name in logits:  # a bundle may lack a head that this version trains
                own = step.targets.role == head.role
                self.everywhere[head.name].append(logits[head.name][own])
        for name, (rows, target) in step.targets.labels.items():
            if name not in logits:
                continue
            self.logits[name].append(logits[name][rows])
            self.targets[name].append(target)
            self.counts[name] += len(rows)

    def _rationales(
        self, step: Step, turns: list[Turn], rationale_logits: list[Tensor]
    ) -> Iterator[tuple[str, int, RationaleOutput]]:
        for chunk, values in zip(step.chunks, rationale_logits, strict=True):
            probabilities = values.float().sigmoid()
            for row in chunk.rationale_mask.any(-1).any(-1).nonzero().flatten().tolist():
                index = int(chunk.turns[row])
                read = int(chunk.attention_mask[row].sum()) - 2  # without [CLS] and [SEP]
                turn = turns[index]
                offsets = self.tokenizer.encode(turn.text, add_special_tokens=False).offsets
                numbers = sentences(offsets, turn.text)
                for channel, name in enumerate(RATIONALE_ORDER):
                    if name not in turn.rationales:
                        continue
                    given = np.zeros(len(offsets), np.float32)
                    given[:read] = probabilities[row, 1 : 1 + read, channel].numpy()
                    spans = turn.rationales[name]
                    gold = np.array([overlaps(offset, spans) for offset in offsets], dtype=int)
                    yield name, index, RationaleOutput(given, gold, numbers, row=-1)

    def predictions(self) -> Predictions:
        heads = {
            name: HeadOutputs(
                torch.cat(values).double().numpy(), torch.cat(self.targets[name]).numpy()
            )
            for name, values in self.logits.items()
            if values
        }
        everywhere = {
            name: torch.cat(values).float().numpy()
            for name, values in self.everywhere.items()
            if values
        }
        return Predictions(heads, self.rationales, everywhere)


def save(predictions: Predictions, path: Path) -> None:
    """Write the outputs on labelled turns as one `.npz`; `everywhere` is left out."""
    arrays: dict[str, Any] = {}
    for name, outputs in predictions.heads.items():
        arrays[f"{name}/logits"], arrays[f"{name}/target"] = outputs.logits, outputs.target
    for name, rationales in predictions.rationales.items():
        if rationales:
            arrays[f"{name}/rows"] = np.array([item.row for item in rationales])
            arrays[f"{name}/sizes"] = np.array([len(item.gold) for item in rationales])
            for key in TOKEN_ARRAYS:
                joined = np.concatenate([getattr(item, key) for item in rationales])
                arrays[f"{name}/{key}"] = joined
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)


def load(path: Path) -> Predictions:
    """Load a file written by `save`."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = dict(stored)
    heads = {
        name: HeadOutputs(values, arrays[f"{name}/target"])
        for key, values in arrays.items()
        if (name := key.removesuffix("/logits")) != key
    }
    rationales: dict[str, list[RationaleOutput]] = {}
    for name in RATIONALE_ORDER:
        if f"{name}/sizes" not in arrays:
            continue
        cuts = arrays[f"{name}/sizes"].cumsum()[:-1]
        columns = [np.split(arrays[f"{name}/{key}"], cuts) for key in TOKEN_ARRAYS]
        rationales[name] = [
            RationaleOutput(given, gold, sentences, row=int(row))
            for given, gold, sentences, row in zip(*columns, arrays[f"{name}/rows"], strict=True)
        ]
    return Predictions(heads, rationales)
