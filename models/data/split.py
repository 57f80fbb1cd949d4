"""A split that depends on the seed and an item's key alone, so new data moves nothing."""

from __future__ import annotations

import hashlib
from typing import Literal

from models.data.corpora import Conversation

Part = Literal["train", "validation", "test"]
DESCRIPTION = "80/10/10 train/validation/test by a hash of the seed and the conversation's id"


def part_of(key: str, seed: int) -> Part:
    """Train, validation or test with probability 0.8, 0.1 and 0.1."""
    digest = hashlib.sha256(f"{seed}:{key}".encode()).digest()
    position = int.from_bytes(digest[:8], "big") / 2**64
    if position < 0.8:
        return "train"
    return "validation" if position < 0.9 else "test"


def split(conversations: list[Conversation], seed: int) -> dict[Part, list[Conversation]]:
    """Conversations by part, in their original order."""
    parts: dict[Part, list[Conversation]] = {"train": [], "validation": [], "test": []}
    for conversation in conversations:
        key = f"{conversation.corpus}:{conversation.split_key}"
        parts[part_of(key, seed)].append(conversation)
    return parts
