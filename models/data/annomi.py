"""AnnoMI: transcribed motivational interviewing (Wu et al. 2022).

Some transcripts have several annotators; the shares of their votes are the labels. A subtype
that is null counts as a vote for "none".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from models.data.corpora import Conversation, Corpus, Turn, read_rows, votes
from models.labels import CLIENT, COUNSELLOR

CORPUS = Corpus(
    "annomi",
    "AnnoMI (Wu et al. 2022)",
    ("annomi.jsonl.gz",),
    "https://github.com/uccollab/AnnoMI",
    "public, for research",
)

SUBTYPES = ("question", "reflection", "input")


def load(data_dir: Path) -> Iterator[Conversation]:
    """Read the sessions."""
    for file in CORPUS.files:
        for row in read_rows(CORPUS, file, data_dir):
            turns = [_turn(entry) for entry in row["utterances"] if entry["text"].strip()]
            yield Conversation("annomi", str(row["conversation_id"]), turns)


def _turn(entry: dict[str, Any]) -> Turn:
    annotations = entry["annotations"]
    if entry["speaker"] != "therapist":
        talk = [note["talk_type"] for note in annotations if note.get("talk_type")]
        labels = {"talk_type": votes("talk_type", talk)} if talk else {}
        return Turn(CLIENT, entry["text"], labels)
    labels = {}
    if annotations:
        labels["behaviour"] = votes("behaviour", [note["behaviour"] for note in annotations])
        for head in SUBTYPES:
            labels[head] = votes(head, [note.get(head) or "none" for note in annotations])
    return Turn(COUNSELLOR, entry["text"], labels)
