"""EPITOME: pairs of a seeker post and a response post (Sharma et al. 2020, section 4).

A pair becomes a conversation of two turns, the seeker's and the response. The response carries
a level 0-2 for each mechanism and the phrases that justify it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from models.data.corpora import Conversation, Corpus, Turn, one_hot, read_rows
from models.labels import CLIENT, COUNSELLOR, RATIONALE_ORDER
from stream_app.core.measures.heads import LEVELS

CORPUS = Corpus(
    "epitome",
    "EPITOME, Reddit part (Sharma et al. 2020)",
    ("epitome_reddit.jsonl.gz",),
    "https://github.com/behavioral-data/Empathy-Mental-Health",
    "research use",
)


def load(data_dir: Path) -> Iterator[Conversation]:
    """Read pairs as two-turn conversations; responses to one seeker post share a split key."""
    for file in CORPUS.files:
        for row in read_rows(CORPUS, file, data_dir):
            response = Turn(COUNSELLOR, row["response_post"])
            for head in RATIONALE_ORDER:
                annotation = row[head]
                level = int(annotation["level"])
                response.labels[head] = one_hot(head, LEVELS[level])
                spans = find_spans(response.text, annotation["rationales"])
                if spans is not None and (spans or level == 0):
                    response.rationales[head] = spans
            seeker = Turn(CLIENT, row["seeker_post"])
            yield Conversation("epitome", str(row["seeker_post_id"]), [seeker, response])


def find_spans(text: str, phrases: list[str]) -> list[tuple[int, int]] | None:
    """Character spans of the phrases, or None if one of them is not found.

    Whitespace is matched loosely, because annotators copied the phrases by hand.

    >>> find_spans("That must be hard.  I am sorry.", ["hard. I am"])
    [(13, 24)]
    """
    spans = []
    for phrase in phrases:
        words = phrase.split()
        if not words:
            continue
        match = re.search(r"\s+".join(map(re.escape, words)), text)
        if match is None:
            return None
        spans.append(match.span())
    return sorted(spans)
