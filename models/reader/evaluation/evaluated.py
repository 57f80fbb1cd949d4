"""Corpora that no model here learns from: motivational interviewing, customer service, a lexicon.

They stay out of `models.reader.corpora.LOADERS`, which training reads. The licence of the service
turns (CC BY-ND) forbids derivatives, so they may be measured and not learned from.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from models.data.corpora import Corpus, corpus_file, read_rows
from models.labels import CLIENT, COUNSELLOR

MIBOT = Corpus(
    "mibot",
    "MIBot: motivational interviewing of smokers (2025)",
    ("mibot.jsonl.gz",),
    "https://github.com/zaffnet/MIBOT_ACL2025",
    "CC BY-SA 4.0",
)
MAIA = Corpus(
    "maia_turns",
    "MAIA-DQE: customer support turns",
    ("maia_turns.jsonl.gz",),
    "https://github.com/johndmendonca/MAIA-DQE",
    "CC BY-ND 4.0, evaluation only",
)
LEXICON = Corpus(
    "suicide_risk_lexicon",
    "Suicide risk lexicon (construct-tracker)",
    ("suicide_risk_lexicon.csv", "suicide_risk_lexicon_definitions.txt"),
    "https://github.com/danielmlow/construct-tracker",
    "Apache-2.0",
)
ROLES = {"client": CLIENT, "counsellor": COUNSELLOR}
SERVICE_ROLES = {"<speaker1>": COUNSELLOR, "<speaker2>": CLIENT}
"""Marks of the turn before; the mark of the rated turn is the same for both sides."""
CARE_ITEMS = 10

Turns = tuple[tuple[int, str], ...]
Lexicon = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Interview:
    """A session with a counselling bot and what its client said of it.

    `care` holds the items of the CARE measure, 1-5 (None: does not apply).
    """

    key: str
    turns: Turns
    care: tuple[int | None, ...]
    liked: bool
    helpful: bool

    @property
    def mean_care(self) -> float | None:
        """Mean of the items that apply, 1-5."""
        given = [item for item in self.care if item is not None]
        return sum(given) / len(given) if given else None


@dataclass(frozen=True)
class ServiceTurn:
    """A turn of customer support after the one before it, with one rater's marks.

    `quality` is the quality of the interaction so far, 1-5. None: not given, or beyond its scale.
    """

    client: str
    role: int
    text: str
    before: Turns
    quality: int | None
    polite: bool | None
    understands: bool | None


def mibot(data_dir: Path) -> Iterator[Interview]:
    """Interviews by a language model; the utterances of a volley are one turn."""
    for row in read_rows(MIBOT, MIBOT.files[0], data_dir):
        care = tuple(int(item) or None for item in row["care_items_1_5"])
        if len(care) != CARE_ITEMS:
            message = f"{MIBOT.name} has {len(care)} CARE items in {row['id']}"
            raise ValueError(message)
        volleys = groupby(row["utterances"], lambda said: (said["role"], said["volley"]))
        turns = tuple(
            (ROLES[role], " ".join(said["text"] for said in utterances))
            for (role, _), utterances in volleys
        )
        yield Interview(row["id"], turns, care, row["liked"] == "YES", row["helpful"] == "YES")


def maia_turns(data_dir: Path) -> Iterator[ServiceTurn]:
    """Turns of agents and customers, in English; the sides take turns."""
    for row in read_rows(MAIA, MAIA.files[0], data_dir):
        mark, said = _marked(row["context_en"])
        other = SERVICE_ROLES[mark]
        yield ServiceTurn(
            row["client"],
            CLIENT if other == COUNSELLOR else COUNSELLOR,
            _marked(row["text_en"])[1],
            ((other, said),),
            _within(row["iq"], 1, 5),
            _yes(row["politeness"]),
            _yes(row["understanding"]),
        )


def _marked(text: str) -> tuple[str, str]:
    mark, _, said = text.partition(">")
    return f"{mark}>", said.strip()


def _within(value: Any, low: int, high: int) -> int | None:  # as in the file
    return value if isinstance(value, int) and low <= value <= high else None


def _yes(value: Any) -> bool | None:  # as in the file
    mark = _within(value, 0, 1)
    return None if mark is None else bool(mark)


def lexicon(data_dir: Path) -> Lexicon:
    """Phrases of each construct, in the file's order, each once.

    The columns for the raters' decisions, which follow each construct's, are empty in the
    published file.
    """
    path = corpus_file(LEXICON, LEXICON.files[0], data_dir)
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    numbered = [row for row in rows if row[""].isdigit()]
    names = [name for name in rows[0] if name and not name.endswith(("_include", "_add"))]
    return {
        name: tuple(dict.fromkeys(row[name].strip() for row in numbered if row[name].strip()))
        for name in names
    }


def definitions(data_dir: Path) -> tuple[str, ...]:
    """The definitions of the lexicon's constructs, one line for each, with examples."""
    path = corpus_file(LEXICON, LEXICON.files[1], data_dir)
    return tuple(line for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
