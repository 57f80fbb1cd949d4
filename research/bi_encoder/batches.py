"""Pairs of a seeker post and a response as padded batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from models.data.corpora import Conversation, Turn
from models.labels import RATIONALE_ORDER
from models.model.batches import tokenise


@dataclass(frozen=True)
class Pair:
    """Token ids of both sides, with [CLS] and [SEP]; levels [3]; rationales [tokens][3].

    `known` [3] is 0 where a mechanism's rationale is not annotated.
    """

    turn: Turn
    seeker: list[int]
    response: list[int]
    levels: list[int]
    rationales: list[list[float]]
    known: list[float]


@dataclass
class Batch:
    """Padded pairs: `ids`, `mask`, `types` [n, tokens] int64; `seeker_ids`, `seeker_mask` likewise.

    `levels` [n, 3] int64; `rationales` and `rationale_mask` [n, tokens, 3] float, the mask 0
    outside the response. `first` [n] is the position of the response's [CLS] in `ids` (0), or in a
    window of the [SEP] before it.
    """

    ids: Tensor
    mask: Tensor
    types: Tensor
    seeker_ids: Tensor
    seeker_mask: Tensor
    levels: Tensor
    rationales: Tensor
    rationale_mask: Tensor
    first: Tensor


def pairs_of(conversations: Sequence[Conversation], tokenizer: Tokenizer) -> list[Pair]:
    """Tokenise conversations of two turns, each cut at `models.model.encoder.MAX_TOKENS`."""
    found = []
    for segment in tokenise(list(conversations), tokenizer):
        seeker, response = segment.turns
        labels = response.turn.labels
        levels = [
            labels[head].index(max(labels[head])) if labels else 0 for head in RATIONALE_ORDER
        ]
        rows = response.rationale or [[0.0] * 3 for _ in response.ids]
        found.append(
            Pair(response.turn, seeker.ids, response.ids, levels, rows, response.rationale_mask)
        )
    return found


def collate(pairs: Sequence[Pair], *, window: bool) -> Batch:
    """Pad the pairs; in a `window` the response follows the seeker post in the same text."""
    ids, types, rationales, masks, first = [], [], [], [], []
    for pair in pairs:
        before = pair.seeker if window else []
        own = pair.response[1:] if window else pair.response
        tokens = len(own)
        ids.append(torch.tensor(before + own))
        types.append(torch.tensor([0] * len(before) + [int(window)] * tokens))
        start = 1 if window else 0
        gold = torch.zeros(len(before) + tokens, 3)
        known = torch.zeros(len(before) + tokens, 3)
        gold[len(before) :] = torch.tensor(pair.rationales[start:])
        inner = slice(len(before) + 1 - start, len(before) + tokens - 1)
        known[inner] = torch.tensor(pair.known)
        rationales.append(gold)
        masks.append(known)
        first.append(len(before) - start)
    seekers = [torch.tensor(pair.seeker) for pair in pairs]
    return Batch(
        ids=_padded(ids),
        mask=_padded([torch.ones_like(row) for row in ids]),
        types=_padded(types),
        seeker_ids=_padded(seekers),
        seeker_mask=_padded([torch.ones_like(row) for row in seekers]),
        levels=torch.tensor([pair.levels for pair in pairs]),
        rationales=_padded(rationales),
        rationale_mask=_padded(masks),
        first=torch.tensor(first),
    )


def _padded(rows: list[Tensor]) -> Tensor:
    return pad_sequence(rows, batch_first=True)
