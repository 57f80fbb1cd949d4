"""Empathetic response intents: listener utterances without context (Welivita & Pu 2020).

The head trains on lines found by key phrases and is tested on human-labelled lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from models.data.corpora import Conversation, Corpus, Part, Turn, one_hot, read_rows
from models.data.phrases import normal
from models.labels import COUNSELLOR, EMPATHIC_INTENTS

CORPUS = Corpus(
    "empathetic_intents",
    "Empathetic response intents (Welivita & Pu 2020)",
    ("empathetic_intents.jsonl.gz",),
    "https://github.com/anuradha1992/EmpatheticIntents",
    "CC BY-NC 4.0",
)

HEAD = "empathic_intent"
PEOPLE = "manual_annotations"
MOST_PER_INTENT = 450
"""Cap on training lines: two thirds of those found by key phrases are questions."""
PREFIX = re.compile(r"^\s*\d+\s*<SEP>\s*")


def load(data_dir: Path) -> Iterator[Conversation]:
    """Read conversations of one turn: the first `MOST_PER_INTENT` training lines of each intent.

    Training lines with the text of a test line are left out.
    """
    taken = dict.fromkeys(EMPATHIC_INTENTS, 0)
    rows = list(read_rows(CORPUS, CORPUS.files[0], data_dir))
    tested = {normal(row["line"]) for row in rows if row["source"] == PEOPLE}
    for number, row in enumerate(rows):
        text = PREFIX.sub("", row["line"]).strip()
        by_people = row["source"] == PEOPLE
        intent = intent_label(row["intent"])
        if not by_people:
            full = taken[intent] >= MOST_PER_INTENT
            if row["split"] != "train" or full or normal(text) in tested:
                continue
            taken[intent] += 1
        turn = Turn(COUNSELLOR, text, {HEAD: one_hot(HEAD, intent)})
        part: Part = "test" if by_people else "train"
        yield Conversation("empathetic_intents", str(number), [turn], part=part)


def intent_label(name: str) -> str:
    """Keep the eight intents; map the rarer ones of the manual labels to neutral.

    >>> intent_label("sharing_experience")
    'neutral'
    """
    return name if name in EMPATHIC_INTENTS else "neutral"
