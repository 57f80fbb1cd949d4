"""Task dialogues and emotional chats as contexts, each with its original reply.

They are used for context contrast in training and for the context probe (Lee et al., section 4.5).
Every conversation belongs to one pool, so that no probe uses a context from training.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Literal

from models.data.corpora import Corpus, Turn, read_rows
from models.labels import CLIENT, COUNSELLOR

SERVICE = Corpus(
    "service",
    "User satisfaction in service dialogues (Sun et al. 2021)",
    tuple(f"uss_{name}.jsonl.gz" for name in ("sgd", "mwoz", "ccpe", "redial")),
    "https://github.com/sunnweiwei/user-satisfaction-simulation",
    "research use",
)
CHATS = Corpus(
    "empathetic_dialogues",
    "EmpatheticDialogues (Rashkin et al. 2019)",
    ("empathetic_dialogues.jsonl.gz",),
    "https://github.com/facebookresearch/EmpatheticDialogues",
    "CC BY-NC 4.0",
)

Pool = Literal["train", "probe"]
Kind = Literal["task", "good_news", "bad_news"]

TRAINING_FILES = ("uss_sgd.jsonl.gz", "uss_mwoz.jsonl.gz", "uss_redial.jsonl.gz")
"""The other service file is reserved for probes: a service that training never saw."""
TRAINING_SHARE = 0.7
CONTENT = 3
"""Users with lower mean satisfaction may deserve sympathy."""

GOOD = frozenset(
    ("joyful", "excited", "proud", "grateful", "hopeful", "confident", "content", "impressed")
)
BAD = frozenset(
    (
        *("sad", "devastated", "lonely", "afraid", "terrified", "anxious", "angry", "furious"),
        *("annoyed", "disappointed", "ashamed", "embarrassed", "guilty", "apprehensive"),
    )
)


@dataclass(frozen=True)
class Context:
    """Up to three turns that precede a reply, the original reply, and their kind."""

    kind: Kind
    turns: tuple[Turn, ...]
    reply: str
    source: str


def pool_of(conversation_id: str) -> Pool:
    """Assign seven tenths of the conversations to training."""
    digest = hashlib.sha256(f"pool:{conversation_id}".encode()).digest()
    return "train" if int.from_bytes(digest[:8], "big") / 2**64 < TRAINING_SHARE else "probe"


def contexts(data_dir: Path, pool: Pool) -> Iterator[Context]:
    """Yield one context per conversation of the pool, in file order."""
    yield from _service(data_dir, pool)
    yield from _emotional(data_dir, pool)


def _service(data_dir: Path, pool: Pool) -> Iterator[Context]:
    corpus = SERVICE
    for file in corpus.files:
        source = file.removesuffix(".jsonl.gz")
        for row in read_rows(corpus, file, data_dir):
            own = pool_of(row["conversation_id"]) if file in TRAINING_FILES else "probe"
            if own != pool:
                continue
            turns = [turn for turn in row["turns"] if turn["text"].strip()]
            spots = [
                index
                for index in range(1, len(turns))
                if turns[index]["speaker"] == "system"
                and turns[index - 1]["speaker"] == "user"
                and turns[index - 1]["satisfaction"]
                and mean(turns[index - 1]["satisfaction"]) >= CONTENT
            ]
            if not spots:
                continue
            spot = spots[len(row["conversation_id"]) * 7 % len(spots)]
            before = tuple(
                Turn(CLIENT if turn["speaker"] == "user" else COUNSELLOR, turn["text"])
                for turn in turns[max(0, spot - 3) : spot]
            )
            yield Context("task", before, turns[spot]["text"], source)


def later_news(data_dir: Path, pool: Pool) -> Iterator[Context]:
    """Yield three turns that begin with news and the reply, from the pool's conversations."""
    yield from _emotional(data_dir, pool, 3)


def _emotional(data_dir: Path, pool: Pool, length: int = 1) -> Iterator[Context]:
    corpus = CHATS
    for row in read_rows(corpus, corpus.files[0], data_dir):
        if row["emotion"] in GOOD:
            kind: Kind = "good_news"
        elif row["emotion"] in BAD:
            kind = "bad_news"
        else:
            continue
        said = [utterance["text"] for utterance in row["utterances"]]
        if len(said) <= length or pool_of(row["conversation_id"]) != pool:
            continue
        turns = [Turn((CLIENT, COUNSELLOR)[i % 2], text) for i, text in enumerate(said[:length])]
        yield Context(kind, tuple(turns), said[length], corpus.name)
