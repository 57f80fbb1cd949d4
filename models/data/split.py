"""A split that depends on the seed and an item's key alone, so new data moves nothing."""

from __future__ import annotations

import hashlib

from models.data.corpora import Conversation, Part

TRAINING_SHARE = 0.9
DESCRIPTION = "90/10 train/test by a hash of the seed and the conversation's id"


def _position(seed: int, key: str) -> float:
    """A number in [0, 1) that depends on the seed and the key alone."""
    digest = hashlib.sha256(f"{seed}:{key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def fold_of(key: str, seed: int, folds: int) -> int:
    """The fold (0 to `folds` - 1) whose test part holds this item."""
    return int(_position(seed, f"fold:{key}") * folds)


def fold_part(key: str, fold: int, folds: int, seed: int) -> Part:
    """Test in its own fold, train in the others.

    No part validates: what is chosen after training (temperatures, thresholds) is fitted for a
    fold on the out-of-fold predictions of the others (`models/calibrate.py`).
    """
    return "test" if fold_of(key, seed, folds) == fold else "train"


def part_of(key: str, seed: int) -> Part:
    """Train or test with probability 0.9 and 0.1."""
    return "train" if _position(seed, key) < TRAINING_SHARE else "test"


def key_of(conversation: Conversation) -> str:
    """What a conversation is split by; a conversation that brings its own part has none."""
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

    Of conversations that never train (lines labelled by people) each fold takes its own share,
    so that every item is scored once.
    """
    return [
        item
        for item in split_fold(conversations, number, folds, seed)["test"]
        if fold_of(key_of(item), seed, folds) == number
    ]
