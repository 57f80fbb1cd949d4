"""A split that depends only on the seed and an item's key, so new data moves no item."""

from __future__ import annotations

import hashlib

from models.data.corpora import Conversation, Part

TRAINING_SHARE = 0.9
DESCRIPTION = "90/10 train/test by a hash of the seed and the conversation's id"


def _position(seed: int, key: str) -> float:
    """A number in [0, 1) determined by the seed and the key."""
    digest = hashlib.sha256(f"{seed}:{key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def fold_of(key: str, seed: int, folds: int) -> int:
    """The fold (0 to `folds` - 1) whose test part contains this item."""
    return int(_position(seed, f"fold:{key}") * folds)


def fold_part(key: str, fold: int, folds: int, seed: int) -> Part:
    """Test in the item's own fold, train in the others.

    There is no validation part: temperatures and thresholds are fitted for each fold on the
    out-of-fold predictions of the others (`models/fit/calibrate.py`).
    """
    return "test" if fold_of(key, seed, folds) == fold else "train"


def part_of(key: str, seed: int) -> Part:
    """Train with probability 0.9, test with 0.1."""
    return "train" if _position(seed, key) < TRAINING_SHARE else "test"


def key_of(conversation: Conversation) -> str:
    """The key for splitting a conversation; None if the corpus defines its part."""
    return f"{conversation.corpus}:{conversation.split_key}"


def split(conversations: list[Conversation], seed: int) -> dict[Part, list[Conversation]]:
    """Conversations by part, in their original order."""
    parts: dict[Part, list[Conversation]] = {"train": [], "test": []}
    for conversation in conversations:
        part = conversation.part or part_of(key_of(conversation), seed)
        parts[part].append(conversation)
    return parts


def split_fold(
    conversations: list[Conversation], fold: int, folds: int, seed: int
) -> dict[Part, list[Conversation]]:
    """As `split`, for one fold of a cross-validation."""
    parts: dict[Part, list[Conversation]] = {"train": [], "test": []}
    for conversation in conversations:
        part = conversation.part or fold_part(key_of(conversation), fold, folds, seed)
        parts[part].append(conversation)
    return parts


def held_out(
    conversations: list[Conversation], number: int, folds: int, seed: int
) -> list[Conversation]:
    """A fold's test part.

    Conversations that never train (human-labelled lines) are distributed over the folds, so that
    every item is scored once.
    """
    return [
        item
        for item in split_fold(conversations, number, folds, seed)["test"]
        if fold_of(key_of(item), seed, folds) == number
    ]
