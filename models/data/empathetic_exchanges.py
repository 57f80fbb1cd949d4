"""EmpatheticExchanges: exchanges whose answers people rated for empathy, 1-5.

Speaker and listener utterances of EmpatheticDialogues with ratings by a third party, so the rating
is perceived empathy from outside the conversation. The file has one for each answer, but the same
one for all answers of a conversation. As the target of a binary head it becomes
a share of "yes", so that the head's probability is the expected rating scaled to 0-1.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from models.data.corpora import Conversation, Corpus, Turn, read_rows
from models.labels import CLIENT, COUNSELLOR

CORPUS = Corpus(
    "empathetic_exchanges",
    "EmpatheticExchanges (Dregdael)",
    ("empathetic_exchanges.jsonl.gz",),
    "https://github.com/Dregdael/EmpatheticeExchanges-dataset",
    "CC BY-NC 4.0",
)

HEAD = "empathy"
LOWEST, HIGHEST = 1, 5


def load(data_dir: Path) -> Iterator[Conversation]:
    """Read the exchanges of each conversation in order; every listener utterance has a rating."""
    for file in CORPUS.files:
        for row in read_rows(CORPUS, file, data_dir):
            turns = []
            for exchange in row["exchanges"]:
                yes = scaled(int(exchange["empathy"]))
                turns.append(Turn(CLIENT, exchange["speaker"]))
                turns.append(Turn(COUNSELLOR, exchange["listener"], {HEAD: (1.0 - yes, yes)}))
            yield Conversation(CORPUS.name, str(row["conversation_id"]), turns)


def scaled(rating: float) -> float:
    """Scale a rating of 1-5 to [0, 1].

    >>> scaled(1), scaled(4)
    (0.0, 0.75)
    """
    return (rating - LOWEST) / (HIGHEST - LOWEST)
