"""From conversations to steps: token ids, window indices and targets.

A step holds whole conversation segments. Every turn is encoded once, in chunks of similar
length, and every labelled turn is scored from the vectors:

    segments   [c0 s0 c1 s1 s2]   [seeker response]  ...
    turns       0  1  2  3  4      5      6               encoded once
    targets        1     3  4             6               indices into the turns
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from models.data.corpora import Conversation, Turn
from models.labels import HEADS_BY_NAME, RATIONALE_ORDER
from models.model.encoder import MAX_TOKENS

BEFORE, AFTER = 3, 3
SLOTS = BEFORE + AFTER
THROUGH_CONTEXT = ("contrast",)
"""Corpora whose context turns also receive gradients, because there the label depends on context.
"""
OFFSETS = (*range(-BEFORE, 0), *range(1, AFTER + 1))


@dataclass
class TokenisedTurn:
    """A turn as token ids; `rationale` and `rationale_mask` have three values per token.

    `lower` [tokens, hidden] is the output of the frozen layers (`models/model/frozen.py`); `taught`
    [2, hidden of the teacher] are the teacher's vectors (`models/fit/teacher.py`).
    """

    turn: Turn
    ids: list[int]
    rationale: list[list[float]] | None = None
    rationale_mask: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    lower: Tensor | None = None
    taught: Tensor | None = None


@dataclass
class Segment:
    """A contiguous part of one conversation. Turns outside `scored` are context only."""

    corpus: str
    turns: list[TokenisedTurn]
    scored: range


@dataclass
class EncoderChunk:
    """Turns of similar length encoded together.

    `turns` [n] are positions in the step; `input_ids` and `attention_mask` are [n, tokens];
    `rationale` and `rationale_mask` are float [n, tokens, 3]. `context_only` turns are encoded
    without gradients in training, at a third of the cost. `lower` [n, tokens, hidden] is the frozen
    layers' output.
    """

    turns: Tensor
    input_ids: Tensor
    attention_mask: Tensor
    rationale: Tensor
    rationale_mask: Tensor
    context_only: bool = False
    lower: Tensor | None = None


@dataclass
class Targets:
    """Turns to score: positions in the step, their windows and their label distributions.

    `labels` maps a head to (rows among the targets [n], distributions [n, labels]).
    """

    turn: Tensor
    role: Tensor
    context: Tensor
    context_role: Tensor
    context_distance: Tensor
    context_mask: Tensor
    labels: dict[str, tuple[Tensor, Tensor]]


@dataclass
class Step:
    """Inputs of one forward pass; `taught` [turns, 2, hidden of the teacher] with a teacher."""

    turns: int
    chunks: list[EncoderChunk]
    targets: Targets
    taught: Tensor | None = None

    def to(self, device: torch.device) -> Step:
        """Copy the step with its tensors on the device."""
        labels = {
            head: (rows.to(device), distributions.to(device))
            for head, (rows, distributions) in self.targets.labels.items()
        }
        targets = replace(_on(device, self.targets), labels=labels)
        taught = None if self.taught is None else self.taught.to(device)
        return Step(self.turns, [_on(device, chunk) for chunk in self.chunks], targets, taught)


Part = TypeVar("Part", EncoderChunk, Targets)


def _on(device: torch.device, item: Part) -> Part:
    tensors: dict[str, Any] = {
        field.name: value.to(device)
        for field in fields(item)
        if isinstance(value := getattr(item, field.name), Tensor)
    }
    return replace(item, **tensors)


@dataclass(frozen=True)
class Window:
    """How training windows are sampled: chance that following turns, or any turns, are visible."""

    after: float
    context: float = 1.0


TRAINING = Window(after=0.5, context=0.9)
PROVISIONAL = Window(after=0.0)
FINAL = Window(after=1.0)
ALONE = Window(after=0.0, context=0.0)


def seeded_random(*parts: object) -> random.Random:
    """A random generator seeded by the parts alone."""
    return random.Random("/".join(map(str, parts)))  # noqa: S311 (nothing secret is drawn)


def tokenise(
    conversations: list[Conversation], tokenizer: Tokenizer, max_tokens: int = MAX_TOKENS
) -> list[Segment]:
    """Split into segments of at most about 30 scored turns, each with its full windows."""
    tokenizer.enable_truncation(max_tokens)
    segments: list[Segment] = []
    for conversation in conversations:
        encodings = tokenizer.encode_batch([turn.text for turn in conversation.turns])
        turns = [
            _tokenised(turn, encoding.ids, encoding.offsets)
            for turn, encoding in zip(conversation.turns, encodings, strict=True)
        ]
        segments.extend(_segments(conversation.corpus, turns))
    tokenizer.no_truncation()
    return segments


def _segments(corpus: str, turns: list[TokenisedTurn], longest: int = 30) -> Iterator[Segment]:
    pieces = max(1, round(len(turns) / longest))
    cuts = [round(piece * len(turns) / pieces) for piece in range(pieces + 1)]
    for start, stop in itertools.pairwise(cuts):
        first, last = max(0, start - BEFORE), min(len(turns), stop + AFTER)
        yield Segment(corpus, turns[first:last], range(start - first, stop - first))


def _tokenised(turn: Turn, ids: list[int], offsets: list[tuple[int, int]]) -> TokenisedTurn:
    if not turn.rationales:
        return TokenisedTurn(turn, ids)
    rows = [
        [float(overlaps(offset, turn.rationales.get(head, []))) for head in RATIONALE_ORDER]
        for offset in offsets
    ]
    known = [float(head in turn.rationales) for head in RATIONALE_ORDER]
    return TokenisedTurn(turn, ids, rows, known)


def overlaps(token: tuple[int, int], spans: list[tuple[int, int]]) -> bool:
    """Whether a token overlaps one of the spans; special tokens are empty."""
    start, stop = token
    return any(start < span_stop and span_start < stop for span_start, span_stop in spans)


def collate(
    segments: list[Segment],
    window: Window,
    chance: random.Random,
    chunk_tokens: int = 512,
    through_context: tuple[str, ...] = THROUGH_CONTEXT,
) -> Step:
    """Build one step from segments; every labelled turn is a target."""
    turns: list[TokenisedTurn] = []
    columns: dict[str, list[list[int]]] = {key: [] for key in ("index", "role", "mask")}
    target_turns: list[int] = []
    trained: set[int] = set()
    for segment in segments:
        base = len(turns)
        turns.extend(segment.turns)
        if segment.corpus in through_context:
            trained.update(range(base, len(turns)))
        for position in segment.scored:
            if not segment.turns[position].turn.labels:
                continue
            target_turns.append(base + position)
            slots = _slots(segment, position, window, chance)
            columns["index"].append([base + max(slot, 0) for slot in slots])
            columns["mask"].append([int(slot >= 0) for slot in slots])
            columns["role"].append([segment.turns[max(slot, 0)].turn.role for slot in slots])
    targets = Targets(
        turn=torch.tensor(target_turns, dtype=torch.long),
        role=torch.tensor([turns[index].turn.role for index in target_turns], dtype=torch.long),
        context=torch.tensor(columns["index"], dtype=torch.long).view(-1, SLOTS),
        context_role=torch.tensor(columns["role"], dtype=torch.long).view(-1, SLOTS),
        context_distance=torch.tensor(OFFSETS).expand(len(target_turns), SLOTS),
        context_mask=torch.tensor(columns["mask"], dtype=torch.long).view(-1, SLOTS),
        labels=_labels([turns[index].turn for index in target_turns]),
    )
    trained.update(target_turns)
    # Trained turns first: autocast caches the 16-bit weights of the first pass for the whole step,
    # and a cache built without gradients would give the trained turns none.
    chunks = encoder_chunks(turns, chunk_tokens, sorted(trained))
    others = [index for index in range(len(turns)) if index not in trained]
    chunks += encoder_chunks(turns, chunk_tokens, others, context_only=True)
    taught = [turn.taught for turn in turns if turn.taught is not None]
    known = torch.stack(taught) if turns and len(taught) == len(turns) else None
    return Step(len(turns), chunks, targets, known)


def _slots(segment: Segment, position: int, window: Window, chance: random.Random) -> list[int]:
    """Position in the segment for each window offset, -1 where no turn is visible."""
    any_context = chance.random() < window.context
    following = chance.random() < window.after
    slots = []
    for offset in OFFSETS:
        neighbour = position + offset
        seen = any_context and (offset < 0 or following)
        slots.append(neighbour if seen and 0 <= neighbour < len(segment.turns) else -1)
    return slots


def _labels(turns: list[Turn]) -> dict[str, tuple[Tensor, Tensor]]:
    labels = {}
    for head in HEADS_BY_NAME:
        rows = [row for row, turn in enumerate(turns) if head in turn.labels]
        if rows:
            distributions = torch.tensor([turns[row].labels[head] for row in rows])
            labels[head] = (torch.tensor(rows), distributions)
    return labels


def encoder_chunks(
    turns: list[TokenisedTurn],
    chunk_tokens: int,
    chosen: list[int] | None = None,
    *,
    context_only: bool = False,
) -> list[EncoderChunk]:
    """Sort the chosen turns (default: all) by length and chunk them.

    A chunk has at most `chunk_tokens` tokens with padding.
    """
    indices = range(len(turns)) if chosen is None else chosen
    order = sorted(indices, key=lambda index: len(turns[index].ids))
    chunks: list[EncoderChunk] = []
    current: list[int] = []
    for index in order:
        if current and len(turns[index].ids) * (len(current) + 1) > chunk_tokens:
            chunks.append(_chunk(turns, current, context_only))
            current = []
        current.append(index)
    if current:
        chunks.append(_chunk(turns, current, context_only))
    return chunks


def _chunk(turns: list[TokenisedTurn], indices: list[int], context_only: bool) -> EncoderChunk:
    width = max(len(turns[index].ids) for index in indices)
    shape = (len(indices), width)
    ids, attention = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    rationale, counted = torch.zeros(*shape, 3), torch.zeros(*shape, 3)
    for row, index in enumerate(indices):
        turn = turns[index]
        size = len(turn.ids)
        ids[row, :size] = torch.tensor(turn.ids)
        attention[row, :size] = 1
        if turn.rationale is not None:
            rationale[row, :size] = torch.tensor(turn.rationale)
            counted[row, :size] = torch.tensor(turn.rationale_mask)
    chunk = EncoderChunk(torch.tensor(indices), ids, attention, rationale, counted, context_only)
    if turns[indices[0]].lower is not None:
        chunk.lower = pad_sequence(
            [state for i in indices if (state := turns[i].lower) is not None], batch_first=True
        )
    return chunk


def epoch_steps(
    segments: list[Segment],
    repeats: dict[str, int],
    pairs_a_step: int,
    chance: random.Random,
) -> list[list[Segment]]:
    """One epoch's steps: each mixes the corpora in the proportion of their repeated sizes.

    `repeats` is the number of passes over each corpus; a step has about `pairs_a_step` segments of
    the first corpus.
    """
    streams: list[list[Segment]] = []
    for corpus, times in repeats.items():
        own = [segment for segment in segments if segment.corpus == corpus]
        streams.append([s for _ in range(times) for s in chance.sample(own, len(own))])
    count = max(1, round(len(streams[0]) / pairs_a_step))
    return [
        [segment for stream in streams for segment in _share(stream, index, count)]
        for index in range(count)
    ]


def _share(stream: list[Segment], index: int, count: int) -> list[Segment]:
    return stream[index * len(stream) // count : (index + 1) * len(stream) // count]
