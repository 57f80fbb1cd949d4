"""Client turns of public corpora: assumed negatives for fitting, and texts to count hits in."""

from __future__ import annotations

from pathlib import Path

from models.data.corpora import read_rows
from models.data.registry import CORPORA
from models.fit.distress import openings, service_turns
from stream_app.core.measures.crisis import find_phrases

ESCONV = ("esconv_train.jsonl.gz", "esconv_valid.jsonl.gz")


def assumed_negatives(data_dir: Path) -> list[str]:
    """Read turns to train on, without those in which the list finds a phrase."""
    items = [*openings(data_dir), *service_turns(data_dir)]
    return [item.text for item in items if not item.test and not find_phrases(item.text)]


def client_turns(data_dir: Path) -> dict[str, list[str]]:
    """Read the turns to count hits in, by corpus; none of them was trained on."""
    epitome = CORPORA["epitome"]
    return {
        "service dialogues, held out": [i.text for i in service_turns(data_dir) if i.test],
        "EmpatheticDialogues, opening turns, held out": [
            item.text for item in openings(data_dir) if item.test
        ],
        "ESConv, seekers' turns": [
            turn["text"]
            for file in ESCONV
            for row in read_rows(CORPORA["esconv"], file, data_dir)
            for turn in row["dialog"]
            if turn["speaker"] == "seeker"
        ],
        "EPITOME, seekers' posts": sorted(
            {row["seeker_post"] for row in read_rows(epitome, epitome.files[0], data_dir)}
        ),
    }
