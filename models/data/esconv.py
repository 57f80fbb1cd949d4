"""ESConv: emotional support chats with one support strategy for each supporter turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from models.data.corpora import Conversation, Corpus, Turn, one_hot, read_rows
from models.labels import CLIENT, COUNSELLOR, STRATEGIES

CORPUS = Corpus(
    "esconv",
    "ESConv (Liu et al. 2021)",
    ("esconv_train.jsonl.gz", "esconv_valid.jsonl.gz", "esconv_failed.jsonl.gz"),
    "https://github.com/thu-coai/Emotional-Support-Conversation",
    "CC BY-NC 4.0",
)

VARIANTS = {
    "questions": "question",
    "other": "others",
    "direct_guidance": "providing_suggestions",
    "approval_and_reassurance": "affirmation_and_reassurance",
    "restatement": "restatement_or_paraphrasing",
}
"""Strategy names that occur only in the file of failed chats."""


def load(data_dir: Path) -> Iterator[Conversation]:
    """Read the chats of all three files, including the failed ones."""
    for file in CORPUS.files:
        for row in read_rows(CORPUS, file, data_dir):
            turns = [_turn(entry) for entry in row["dialog"] if entry["text"].strip()]
            yield Conversation("esconv", str(row["conversation_id"]), turns)


def has_failed(chat: Conversation) -> bool:
    """Whether the chat is from the file of failed chats."""
    return chat.split_key.startswith("esconv-failed")


def _turn(entry: dict[str, str]) -> Turn:
    if entry["speaker"] != "supporter":
        return Turn(CLIENT, entry["text"])
    strategy = strategy_label(entry["strategy"])
    return Turn(COUNSELLOR, entry["text"], {"strategy": one_hot("strategy", strategy)})


def strategy_label(name: str) -> str:
    """Map a published strategy name to one of the eight labels.

    >>> strategy_label("Self-disclosure"), strategy_label("Questions")
    ('self_disclosure', 'question')
    """
    key = name.strip().lower().replace("-", "_").replace(" ", "_")
    label = VARIANTS.get(key, key)
    if label not in STRATEGIES:
        message = f"unknown ESConv strategy {name!r}"
        raise ValueError(message)
    return label
