"""The labelled utterances of agents in customer service, and their second labels.

Some were written for this project. The others are system turns of the service dialogues, of which
only place and labels are stored here; their texts are read from the corpus.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from models.data import annomi
from models.data.corpora import read_rows
from models.data.dialogues import SERVICE

FOLDER = Path(__file__).parent
UTTERANCES, SECOND = FOLDER / "utterances.jsonl", FOLDER / "second_pass.jsonl"
WRITTEN, DIALOGUES = "written", "dialogues"


@dataclass(frozen=True)
class LabelledUtterance:
    """An utterance with all its intents; `part`: `written` or `dialogues`."""

    id: int
    text: str
    intents: frozenset[str]
    part: str


def read(data_dir: Path | None) -> list[LabelledUtterance]:
    """Read the utterances; without the corpora only those written for this project."""
    rows = [json.loads(line) for line in UTTERANCES.read_text(encoding="utf-8").splitlines()]
    texts = _texts(data_dir) if data_dir is not None else {}
    found = []
    for row in rows:
        written = "text" in row
        if not written and data_dir is None:
            continue
        text = row["text"] if written else texts[row["conversation"], row["turn"]]
        part = WRITTEN if written else DIALOGUES
        found.append(LabelledUtterance(row["id"], text, frozenset(row["intents"]), part))
    return found


def second_labels() -> dict[int, frozenset[str]]:
    """Read the labels of the second pass by the utterances' ids."""
    lines = SECOND.read_text(encoding="utf-8").splitlines()
    return {row["id"]: frozenset(row["intents"]) for row in map(json.loads, lines)}


def therapist_turns(data_dir: Path) -> dict[str, list[str]]:
    """Read the therapists' turns of AnnoMI by the quality of the session, low and high."""
    found: dict[str, list[str]] = {"low": [], "high": []}
    for file in annomi.CORPUS.files:
        for row in read_rows(annomi.CORPUS, file, data_dir):
            found[row["mi_quality"]] += [
                said["text"]
                for said in row["utterances"]
                if said["speaker"] == "therapist" and said["text"].strip()
            ]
    return found


def _texts(data_dir: Path) -> dict[tuple[str, int], str]:
    return {
        (row["conversation_id"], place): turn["text"]
        for file in SERVICE.files
        for row in read_rows(SERVICE, file, data_dir)
        for place, turn in enumerate(row["turns"])
    }
