"""Out-of-fold predictions: each fold's model on the conversations it did not train on.

Predictions are cached in the model's folder, so that a second evaluation takes seconds.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from models.data import Conversation, esconv
from models.data.split import held_out
from models.evaluate.predict import Predictions, load, predict_views, save
from models.labels import OUTCOME_HEADS, RATED
from models.model import multitask
from models.model.batches import ALONE, FINAL, PROVISIONAL, tokenise

VIEWS = {"final": FINAL, "provisional": PROVISIONAL, "alone": ALONE}
VIEW_WORDS = {
    "final": "turns before and after",
    "provisional": "turns before",
    "alone": "no context",
}
CACHE_FORMAT = 2


@dataclass(frozen=True)
class Rated:
    """Answers with a third party's empathy rating: number of words and conversation, both [n]."""

    words: NDArray[np.int64]
    conversation: NDArray[np.int64]


@dataclass
class Fold:
    """One fold's predictions by view.

    `failed` [supporter turns] marks the rows of the strategy head that are from failed chats;
    `rated` describes the rows of the head of rated empathy.
    """

    number: int
    views: dict[str, Predictions]
    failed: NDArray[np.bool_] | None = None
    rated: Rated | None = None


def finished(folder: Path) -> list[int]:
    """Numbers of the folds with a trained model."""
    return sorted(
        int(path.parent.name)
        for path in folder.glob("*/training.json")
        if path.parent.name.isdigit() and (path.parent / "model.pt").is_file()
    )


def plan(folder: Path) -> tuple[int, int]:
    """Number of folds and seed of the trained models."""
    path = folder / "folds.json"
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return content.get("folds", 5), content.get("seed", 17)


def load_folds(folder: Path, conversations: list[Conversation]) -> list[Fold]:
    """Predictions of every finished fold, cached until the model changes."""
    folds, seed = plan(folder)
    result = []
    for number in finished(folder):
        own = folder / str(number)
        test = held_out(conversations, number, folds, seed)
        paths = {view: own / f"predictions_{view}.npz" for view in VIEWS}
        stamp = own / "predictions.json"
        wanted = {
            "model": weights_digest(own / "model.pt"),
            "test": len(test),
            "format": CACHE_FORMAT,
        }
        known = json.loads(stamp.read_text(encoding="utf-8")) if stamp.is_file() else None
        if known == wanted and all(path.is_file() for path in paths.values()):
            views = {view: load(path) for view, path in paths.items()}
            result.append(Fold(number, views, from_failed_chats(test), rated(test)))
            continue
        print(f"fold {number}: predicting {len(test)} conversations", flush=True)
        model, tokenizer = multitask.load(own)
        views = predict_views(model, tokenise(test, tokenizer), VIEWS, tokenizer)
        for view, path in paths.items():
            save(views[view], path)
        stamp.write_text(json.dumps(wanted) + "\n", encoding="utf-8")
        result.append(Fold(number, views, from_failed_chats(test), rated(test)))
    return result


def from_failed_chats(conversations: list[Conversation]) -> NDArray[np.bool_]:
    """For each turn with a strategy, whether its chat is one of ESConv's failed chats."""
    return np.array(
        [
            esconv.has_failed(item)
            for item in conversations
            for turn in item.turns
            if "strategy" in turn.labels
        ],
        dtype=bool,
    )


def rated(conversations: list[Conversation]) -> Rated:
    """Length and conversation of each turn with an empathy rating, in order."""
    found = [
        (len(turn.text.split()), number)
        for number, item in enumerate(conversations)
        for turn in item.turns
        if RATED in turn.labels
    ]
    words, conversation = np.array(found, dtype=np.int64).reshape(-1, 2).T
    return Rated(words, conversation)


def weights_digest(path: Path) -> str:
    """Digest of the weights that predict turn labels, without the outcome heads fitted later."""
    state = torch.load(path, map_location="cpu", weights_only=True)
    later = tuple(f"head.tasks.{name}." for name in OUTCOME_HEADS)
    digest = hashlib.sha256()
    for name, tensor in state.items():
        if not name.startswith(later):
            digest.update(name.encode())
            digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()
