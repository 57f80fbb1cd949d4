"""`python -m export.reactions --bundle FOLDER`: fine-tune one head of a bundle on more contrast.

The head of emotional reactions classified sympathy as empathic after good news, too. Its small task
network is fine-tuned on more pairs of equal words that fit and do not fit (`models.data.contrast`);
encoder, fusion and all other heads are unchanged. Two loss terms preserve the levels: EPITOME's
labels, and the network's previous outputs on ordinary replies (learning without forgetting, Li &
Hoiem 2016). It takes minutes on one core and needs no trained model folder, because the weights are
read from the bundle's graphs.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from models.bundle import CARD, ENCODER, HEAD, MANIFEST, TOKENIZER, VERSION, sha256, write_manifest
from models.card import model_card
from models.data import epitome, esconv, load_for_command
from models.data.contrast import REACTIONS, Mix
from models.data.contrast import load as contrast_pairs
from models.data.corpora import Conversation, Turn, resolve_data_dir
from models.data.split import DESCRIPTION, split
from models.evaluate import metrics
from models.evaluate.predict import predict
from models.evaluate.resampling import spearman
from models.fit.calibrate import Calibration
from models.fit.turn_features import fuse
from models.labels import COUNSELLOR
from models.model.batches import AFTER, BEFORE, FINAL, PROVISIONAL, tokenise
from models.model.head_graph import read_head, write_task
from models.model.heads import ContextHead, tempered
from models.model.onnx_model import OnnxModel
from models.pages.report import measure
from stream_app.contracts.events import Role
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.scorer import OnnxScorer

AT_A_TIME = 256
ORDINARY = 4_000
"""Counsellor turns of ESConv, each seen with and without following turns."""


@dataclass(frozen=True)
class Recipe:
    """Hyper-parameters; `kept` weighs the previous outputs against the labels."""

    epochs: int = 6
    rate: float = 3e-4
    batch: int = 64
    kept: float = 3.0
    seed: int = 17
    sympathy: int = 3_000
    cheers: int = 1_500
    cheers_in_task: int = 300
    beside_real_reply: int = 600

    @property
    def mix(self) -> Mix:
        """Numbers of the pairs."""
        return Mix(
            sympathy=self.sympathy,
            cheers=self.cheers,
            cheers_in_task=self.cheers_in_task,
            beside_real_reply=self.beside_real_reply,
        )


@dataclass(frozen=True)
class Window:
    """A counsellor's turn with its context; `place` is its index among the turns."""

    turns: Sequence[Turn]
    place: int

    @property
    def target(self) -> Turn:
        """The turn to score."""
        return self.turns[self.place]


@dataclass(frozen=True)
class Examples:
    """Inputs of the task network: features [n, fused] in context and alone, targets [n, 3]."""

    fused: Tensor
    alone: Tensor
    target: Tensor


class BundleFeatures:
    """Computes features of windows with the bundle's own encoder and fusion."""

    def __init__(self, folder: Path, head: ContextHead) -> None:
        self.scorer = OnnxScorer(bundles.load(folder))
        self.head = head
        self._vectors: dict[str, NDArray[np.float16]] = {}

    def of(self, windows: Sequence[Window], target: Tensor | None = None) -> Examples:
        """Features of the windows, with their labels unless targets are given."""
        texts = {turn.text for window in windows for turn in window.turns} - self._vectors.keys()
        for some in _batches(sorted(texts)):
            encoded = self.scorer.encode(some, [Role.CLIENT] * len(some))
            for text, encoding in zip(some, encoded, strict=True):
                vectors = np.frombuffer(encoding.vectors, np.float16)
                self._vectors[text] = vectors.reshape(2, -1)
        turns = [turn for window in windows for turn in window.turns]
        vectors = np.stack([self._vectors[turn.text] for turn in turns])
        roles = np.array([turn.role for turn in turns])
        starts = np.cumsum([0, *(len(window.turns) for window in windows)])
        rows = starts[:-1] + np.array([window.place for window in windows])
        # A window contains only turns that its target may see, so the view is the final one.
        fused = torch.from_numpy(fuse(self.head, vectors, roles, starts, "final")[rows]).float()
        with torch.inference_mode():
            alone = self.head.alone(torch.from_numpy(vectors[rows]).float())
        if target is None:
            target = torch.tensor([w.target.labels[REACTIONS] for w in windows])
        return Examples(fused, alone, target)


def _batches(texts: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(texts), AT_A_TIME):
        yield texts[first : first + AT_A_TIME]


def labelled(conversations: Sequence[Conversation]) -> list[Window]:
    """The last turns that have a label of this head, with all preceding turns."""
    return [
        Window(item.turns, len(item.turns) - 1)
        for item in conversations
        if REACTIONS in item.turns[-1].labels
    ]


def ordinary(chats: Sequence[Conversation], amount: int) -> list[Window]:
    """Counsellor turns spread over the chats, with alternating provisional and final views."""
    found = []
    for chat in chats:
        for place, turn in enumerate(chat.turns):
            if turn.role == COUNSELLOR:
                first = max(0, place - BEFORE)
                found.append(Window(chat.turns[first : place + 1], place - first))
                found.append(Window(chat.turns[first : place + 1 + AFTER], place - first))
    return found[:: max(1, len(found) // (2 * amount))]


def learn(
    task: nn.Module, labels: Examples, contrast: Examples, usual: Examples, recipe: Recipe
) -> nn.Module:
    """Fine-tune a copy of the task network on the contrast pairs, preserving its other outputs."""
    chance = torch.Generator().manual_seed(recipe.seed)
    torch.manual_seed(recipe.seed)
    before = copy.deepcopy(task).eval()
    with torch.no_grad():
        said = before(labels.fused).softmax(-1)
        usually = before(usual.fused).softmax(-1)
    after = copy.deepcopy(task).train()
    optimiser = torch.optim.AdamW(after.parameters(), lr=recipe.rate, weight_decay=0.01)
    for _ in range(recipe.epochs):
        orders = [_order(len(part.fused), len(contrast.fused), chance) for part in (labels, usual)]
        shuffled = torch.randperm(len(contrast.fused), generator=chance)
        for first in range(0, len(shuffled), recipe.batch):
            step = slice(first, first + recipe.batch)
            known, plain, pair = orders[0][step], orders[1][step], shuffled[step]
            of_known = after(labels.fused[known])
            loss = (
                _cross_entropy(of_known, labels.target[known])
                + recipe.kept * _cross_entropy(of_known, said[known])
                + recipe.kept * _cross_entropy(after(usual.fused[plain]), usually[plain])
                + _cross_entropy(after(contrast.fused[pair]), contrast.target[pair])
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return after.eval()


def _order(size: int, wanted: int, chance: torch.Generator) -> Tensor:
    """At least `wanted` row numbers, all rows about equally often."""
    rounds = [torch.randperm(size, generator=chance) for _ in range(wanted // size + 1)]
    return torch.cat(rounds)


def _cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


@torch.inference_mode()
def figures(task: nn.Module, held_out: Examples, given: Calibration) -> dict[str, float]:
    """Accuracy, macro-F1, log loss and Spearman of the expected level on held-out responses."""
    logits = tempered(task(held_out.fused), task(held_out.alone)).numpy().astype(np.float64)
    gold = held_out.target.argmax(1).numpy()
    p = given.probabilities(REACTIONS, logits)
    levels = given.labels(REACTIONS, p)
    return {
        "n": len(gold),
        "accuracy": metrics.accuracy(gold, levels),
        "macro_f1": metrics.macro_f1(gold, levels),
        "log_loss": float(-np.log(p[np.arange(len(gold)), gold]).mean()),
        "spearman": spearman(p @ np.array([0.0, 0.5, 1.0]), gold),
    }


@torch.inference_mode()
def moved(before: nn.Module, after: nn.Module, usual: Examples, given: Calibration) -> float:
    """Mean absolute change of the expected level (0-2) of ordinary turns."""
    levels = []
    for task in (before, after):
        logits = tempered(task(usual.fused), task(usual.alone)).numpy().astype(np.float64)
        levels.append(given.probabilities(REACTIONS, logits) @ np.array([0.0, 1.0, 2.0]))
    return float(np.abs(levels[1] - levels[0]).mean())


def main(
    bundle: Annotated[Path, typer.Option(help="Folder of the bundle; it is changed.")] = Path(
        "stream_app/bundles/default"
    ),
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    threads: int = 1,
) -> None:
    """Fine-tune the head, write it into the bundle and report the change."""
    torch.set_num_threads(threads)
    content = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    training = content["training"]
    if training["split"] != DESCRIPTION:
        raise SystemExit(
            f"error: {bundle} was trained on {training['split']!r}; this command needs a bundle "
            f"trained without a held-out tenth ({DESCRIPTION})"
        )
    recipe = Recipe(seed=int(training["seed"]))
    folder = resolve_data_dir(data_dir)
    pairs = split(list(epitome.load(folder)), recipe.seed)
    chats = split(list(esconv.load(folder)), recipe.seed)
    head = read_head(bundle / HEAD)
    features = BundleFeatures(bundle, head)
    contrast = contrast_pairs(pairs["train"], folder, recipe.seed, recipe.mix)
    windows = ordinary(chats["train"], ORDINARY)
    usual = features.of(windows, torch.zeros(len(windows), 3))
    labels, held_out = (features.of(labelled(pairs[part])) for part in ("train", "test"))
    before = head.tasks[REACTIONS]
    after = learn(before, labels, features.of(labelled(contrast)), usual, recipe)
    given = calibration_of(content)
    report = {
        "recipe": asdict(recipe),
        "before": figures(before, held_out, given),
        "after": figures(after, held_out, given),
        "ordinary_turns_moved": moved(before, after, usual, given),
    }
    write_task(bundle / HEAD, REACTIONS, after)
    content["version"] = VERSION
    content["files"][HEAD] = sha256(bundle / HEAD)
    content["metrics"]["reactions"] = report
    content["metrics"] |= measured(bundle, content, load_for_command(data_dir), threads)
    write_manifest(bundle, content)
    (bundle / CARD).write_text(model_card(content), encoding="utf-8")
    print(json.dumps(report, indent=1))


def measured(
    folder: Path, content: dict[str, Any], conversations: list[Conversation], threads: int
) -> dict[str, Any]:
    """Figures of the bundle's own graphs on its held-out turns, by view."""
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.no_truncation()
    segments = tokenise(split(conversations, int(content["training"]["seed"]))["test"], tokenizer)
    alone = not content["encoder"]["batch_independent"]
    scorer = OnnxModel(folder / ENCODER, folder / HEAD, threads=threads, alone=alone)
    given = calibration_of(content)
    views = {"test": FINAL, "test_provisional": PROVISIONAL}
    return {
        name: measure(predict(scorer, segments, window, tokenizer), given)
        for name, window in views.items()
    }


def calibration_of(content: dict[str, Any]) -> Calibration:
    """Read the calibration from a manifest."""
    heads = {head["name"]: head for head in content["heads"]}
    return Calibration(
        temperatures={name: head["temperature"] for name, head in heads.items()},
        biases={name: head["bias"] for name, head in heads.items() if head["bias"]},
        offsets={name: head["offsets"] for name, head in heads.items() if head["offsets"]},
        thresholds={
            name: head["rationale"]["threshold"]
            for name, head in heads.items()
            if head["rationale"] is not None
        },
    )


if __name__ == "__main__":
    typer.run(main)
