"""Training text for the student: pieces of conversations, without their labels.

The split is the teacher's: no conversation held out from the teacher is used, and corpora without
turn labels contribute only the pool that context probes leave to training
(`models.data.dialogues.pool_of`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from models.data import contrast, load_corpora
from models.data.corpora import Conversation, Turn, read_rows
from models.data.dialogues import TRAINING_FILES, pool_of
from models.data.phrases import normal
from models.data.rated_sessions import load_sessions
from models.data.registry import CORPORA
from models.data.split import key_of
from models.fit.perceived import Share
from models.fit.turn_features import windows
from models.labels import CLIENT, COUNSELLOR
from models.model.batches import BEFORE, OFFSETS, TokenisedTurn, Window, seeded_random
from models.model.encoder import MAX_TOKENS

PIECE = 16
"""Maximum number of turns in a piece; no window reaches beyond it."""


@dataclass(frozen=True)
class Amount:
    """Maximum number of conversations from the corpora without turn labels."""

    chats: int = 4_000
    service: int = 500


@dataclass
class Piece:
    """Consecutive turns; `texts` are indices into the encoded texts."""

    roles: list[int]
    texts: list[int]


@dataclass
class Material:
    """Distinct texts as token ids, and the pieces for training and for checks."""

    texts: list[list[int]]
    training: list[Piece]
    held_out: list[Piece]


def conversations(
    data_dir: Path, share: Share, amount: Amount
) -> tuple[list[Conversation], list[Conversation]]:
    """Conversations for training, and those that were held out from the teacher."""
    labelled = load_corpora(data_dir)
    training = [item for item in labelled if _trains(item, share)]
    held_out = [item for item in labelled if not _trains(item, share)]
    training += contrast.load(training, data_dir, share.seed)
    tested = {normal(turn.text) for item in held_out for turn in item.turns}
    for source, most in ((_chats, amount.chats), (_service, amount.service)):
        found = [item for item in source(data_dir) if pool_of(item.split_key) == "train"]
        kept = [item for item in found if share.trains(key_of(item))]
        held_out += [item for item in found if not share.trains(key_of(item))][: most // 9]
        chosen = seeded_random(share.seed, source.__name__).sample(kept, len(kept))[:most]
        training += [item for item in chosen if not _overlaps(item, tested)]
    return training, held_out


def _trains(item: Conversation, share: Share) -> bool:
    return item.part == "train" or (item.part is None and share.trains(key_of(item)))


def _overlaps(item: Conversation, tested: set[str]) -> bool:
    """Whether it contains a sentence of the held-out part; short sentences do not count."""
    return any(len(turn.text) > 40 and normal(turn.text) in tested for turn in item.turns)


def _chats(data_dir: Path) -> Iterator[Conversation]:
    corpus = CORPORA["empathetic_dialogues"]
    for row in read_rows(corpus, corpus.files[0], data_dir):
        said = [entry["text"] for entry in row["utterances"] if entry["text"].strip()]
        turns = [Turn((CLIENT, COUNSELLOR)[place % 2], text) for place, text in enumerate(said)]
        yield Conversation(corpus.name, str(row["conversation_id"]), turns)


def _service(data_dir: Path) -> Iterator[Conversation]:
    kinds = {file.removeprefix("uss_").removesuffix(".jsonl.gz") for file in TRAINING_FILES}
    for session in load_sessions(data_dir):
        if session.source in kinds:
            turns = [Turn(turn.role, turn.text) for turn in session.turns]
            yield Conversation("service", session.key.removeprefix("service:"), turns)


def material(
    training: list[Conversation], held_out: list[Conversation], tokenizer: Tokenizer
) -> Material:
    """Split conversations into pieces; a repeated text is stored once."""
    everything = [turn.text for item in (*training, *held_out) for turn in item.turns]
    place = {text: row for row, text in enumerate(dict.fromkeys(everything))}
    tokenizer.enable_truncation(MAX_TOKENS)
    texts = [encoding.ids for encoding in tokenizer.encode_batch(list(place))]
    tokenizer.no_truncation()
    return Material(texts, _pieces(training, place), _pieces(held_out, place))


def _pieces(conversations: list[Conversation], place: dict[str, int]) -> list[Piece]:
    return [
        Piece([turn.role for turn in part], [place[turn.text] for turn in part])
        for item in conversations
        for first in range(0, len(item.turns), PIECE)
        if (part := item.turns[first : first + PIECE])
    ]


@dataclass
class Group:
    """The turns of some pieces as one step, with the window of each.

    `texts` and `role` [turns]; `context`, `distance` and `mask` [turns, slots] are inputs of the
    context head, with `context` as rows of the turns.
    """

    texts: list[int]
    role: Tensor
    context: Tensor
    distance: Tensor
    mask: Tensor

    @property
    def context_role(self) -> Tensor:
        """Roles of the neighbours [turns, slots]."""
        return self.role[self.context]

    def tokenised(self, texts: list[list[int]]) -> list[TokenisedTurn]:
        """The turns for `models.model.batches.encoder_chunks`."""
        return [TokenisedTurn(Turn(0, ""), texts[row]) for row in self.texts]


def group(pieces: list[Piece], window: Window, *parts: object) -> Group:
    """Combine pieces, with windows sampled by `window` and a random generator seeded by `parts`."""
    chance = seeded_random(*parts)
    sizes = [len(piece.texts) for piece in pieces]
    starts = torch.tensor([0, *itertools.accumulate(sizes)])
    neighbours, present = windows(starts.numpy())
    mask = torch.from_numpy(present)
    for row in range(len(mask)):
        if chance.random() >= window.context:
            mask[row] = 0
        elif chance.random() >= window.after:
            mask[row, BEFORE:] = 0
    return Group(
        texts=[row for piece in pieces for row in piece.texts],
        role=torch.tensor([role for piece in pieces for role in piece.roles]),
        context=torch.from_numpy(neighbours),
        distance=torch.tensor(OFFSETS).expand(len(mask), len(OFFSETS)),
        mask=mask,
    )


def steps(
    pieces: list[Piece], texts: list[list[int]], tokens: int, *parts: object
) -> list[list[Piece]]:
    """Shuffle all pieces, seeded by `parts`, into steps of at least `tokens` tokens."""
    found: list[list[Piece]] = []
    current: list[Piece] = []
    size = 0
    for piece in seeded_random(*parts).sample(pieces, len(pieces)):
        current.append(piece)
        size += sum(len(texts[row]) for row in piece.texts)
        if size >= tokens:
            found.append(current)
            current, size = [], 0
    return [*found, current] if current else found
