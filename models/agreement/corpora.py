"""Ratings in the public corpora: AnnoMI's annotators, and a bundle on its held-out tenth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from models.agreement.ratings import Coder, Rating, Scale
from models.data import annomi, epitome, esconv
from models.data.corpora import Conversation, read_rows
from models.data.split import key_of, split
from models.labels import COUNSELLOR, HEADS_BY_NAME
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.measures.window import Neighbour, ScoringRequest, WindowTurn
from stream_app.core.session.ports import Encoding, HeadScores, Scorer

EXPERT: Final = Coder("expert", "expert")
RAPPORT: Final = Coder("rapport", "rapport")
SUBTYPES: Final = ("question", "reflection", "input")
ORDERED: Final = {"emotional_reactions", "interpretations", "explorations", "talk_type"}
"""Levels, and client talk from sustain over neutral to change."""
AT_ONCE: Final = 256
LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)
LOADERS: Final = (epitome, esconv, annomi)


def scales() -> dict[str, Scale]:
    """The scale of every head."""
    return {
        name: Scale(head.labels, ordered=name in ORDERED) for name, head in HEADS_BY_NAME.items()
    }


def annotators(data_dir: Path) -> Iterator[Rating]:
    """Each annotator's codes in AnnoMI (Wu et al. 2022); a missing subtype is the code `none`."""
    for file in annomi.CORPUS.files:
        for row in read_rows(annomi.CORPUS, file, data_dir):
            session = str(row["conversation_id"])
            for entry in row["utterances"]:
                for note in entry["annotations"]:
                    coder = Coder(f"annotator {note['annotator']}", "expert")
                    for variable, value in _codes(entry["speaker"], note):
                        yield Rating(session, str(entry["index"]), coder, variable, value)


def _codes(speaker: str, note: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    if speaker != "therapist":
        if note.get("talk_type"):
            yield "talk_type", str(note["talk_type"])
        return
    yield "behaviour", str(note["behaviour"])
    for name in SUBTYPES:
        yield name, note.get(name) or "none"


def held_out(data_dir: Path, seed: int) -> list[Conversation]:
    """Conversations with expert labels that the training of a shipped bundle left out."""
    return split([item for each in LOADERS for item in each.load(data_dir)], seed)["test"]


def majority(shares: Sequence[float]) -> int | None:
    """The position that most annotators chose; None if two are equally frequent.

    >>> majority((0.2, 0.8)), majority((0.5, 0.5))
    (1, None)
    """
    most = max(shares)
    places = [place for place, share in enumerate(shares) if np.isclose(share, most)]
    return places[0] if len(places) == 1 else None


def experts(conversations: Iterable[Conversation]) -> Iterator[Rating]:
    """The label of each turn; of several annotators the one that most chose, if there is one."""
    for session, number, item in numbered(conversations):
        for seq, turn in enumerate(item.turns):
            for name, shares in turn.labels.items():
                place = majority(shares)
                if place is not None:
                    value = HEADS_BY_NAME[name].labels[place]
                    yield Rating(session, f"{number}/{seq}", EXPERT, name, value)


def rapport(scorer: Scorer, conversations: Iterable[Conversation]) -> Iterator[tuple[Rating, bool]]:
    """The bundle's final value of each labelled turn, and whether it answers or would abstain."""
    for session, number, item in numbered(conversations):
        chosen = [seq for seq, turn in enumerate(item.turns) if turn.labels]
        for seq, scores in zip(chosen, _scored(scorer, item, chosen), strict=True):
            for name in item.turns[seq].labels:
                value = value_of(scores, name)
                if value is not None:
                    rating = Rating(session, f"{number}/{seq}", RAPPORT, name, value)
                    yield rating, name not in scores.abstained


def numbered(conversations: Iterable[Conversation]) -> Iterator[tuple[str, int, Conversation]]:
    """Each conversation with its session and its number there, the same in every part of a corpus.

    A session is what is resampled: a conversation, or all responses to one seeker post.
    """
    found: Counter[str] = Counter()
    for item in conversations:
        session = key_of(item)
        yield session, found[session], item
        found[session] += 1


def value_of(scores: HeadScores, head: str) -> str | None:
    """The decided level, else the most probable label; None if the bundle lacks the head."""
    level = scores.expressed.level(head)
    shares = scores.expressed.distribution(head) or scores.client.get(head)
    if level is not None:
        return HEADS_BY_NAME[head].labels[level.level]
    return max(shares, key=shares.__getitem__) if shares else None


def _scored(scorer: Scorer, item: Conversation, chosen: Sequence[int]) -> list[HeadScores]:
    texts = list(dict.fromkeys(turn.text for turn in item.turns))
    known = dict(zip(texts, scorer.encode(texts), strict=True))
    turns = [_encoded(seq, turn.role, known[turn.text]) for seq, turn in enumerate(item.turns)]
    before, after = scorer.window
    requests = [
        ScoringRequest(
            turns[seq],
            Stage.FINAL,
            [
                Neighbour(turns[near], near - seq)
                for near in range(max(0, seq - before), min(len(turns), seq + after + 1))
                if near != seq
            ],
        )
        for seq in chosen
    ]
    return [
        each
        for first in range(0, len(requests), AT_ONCE)
        for each in scorer.score(requests[first : first + AT_ONCE])
    ]


def _encoded(seq: int, role: int, encoding: Encoding) -> WindowTurn:
    return WindowTurn(
        seq=seq,
        role=Role.COUNSELLOR if role == COUNSELLOR else Role.CLIENT,
        occurred_at=LONG_AGO,
        digest=0,
        words=0,
        vectors=encoding.vectors,
        rationales={},
        parts=encoding.parts,
    )
