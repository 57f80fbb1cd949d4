"""The turns written for this project, split by phrase family, and their second labels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
TURNS, SECOND = FOLDER / "turns.jsonl", FOLDER / "second_pass.jsonl"
TEST_SHARE = 0.4
"""Share of each category's families that is held out."""


@dataclass(frozen=True)
class WrittenTurn:
    """A client turn; `family`: turns with the same idea, of which one part has all."""

    id: int
    family: str
    category: str
    label: str
    text: str

    @property
    def is_crisis(self) -> bool:
        """Whether it is labelled as crisis language."""
        return self.label == "yes"


def read() -> list[WrittenTurn]:
    """Read all turns."""
    lines = TURNS.read_text(encoding="utf-8").splitlines()
    return [WrittenTurn(**json.loads(line)) for line in lines]


def second_labels() -> dict[int, str]:
    """Read the labels of the second pass by the turns' ids."""
    lines = SECOND.read_text(encoding="utf-8").splitlines()
    return {row["id"]: row["label"] for row in map(json.loads, lines)}


def split(turns: Sequence[WrittenTurn]) -> tuple[list[WrittenTurn], list[WrittenTurn]]:
    """Split into training and test; each category gives a share of its families to the test."""
    held_out: set[str] = set()
    for category in {turn.category for turn in turns}:
        families = {turn.family for turn in turns if turn.category == category}
        ordered = sorted(families, key=lambda name: hashlib.sha256(name.encode()).digest())
        held_out.update(ordered[: round(TEST_SHARE * len(ordered))])
    return (
        [turn for turn in turns if turn.family not in held_out],
        [turn for turn in turns if turn.family in held_out],
    )
