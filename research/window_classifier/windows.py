"""Windows of turns as token ids, with the place of the target's own tokens.

    [CLS] client : first words [SEP] counsellor : the target [SEP] client : and then [SEP]
    types 0 0 0    0     0     0     0          0 1   1      0     0 ...
    target                                        ^^^^^^^^^^

A role name and a separator mark each turn; the classifier reads the mean of the target's tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from models.data.corpora import Conversation, Turn
from models.labels import ROLE_NAMES
from models.model.encoder import MAX_TOKENS
from research.window_classifier.design import Design

WINDOW_TOKENS = 2 * MAX_TOKENS
"""Tokens of a window: the target has up to half of them, its neighbours share the rest."""


@dataclass(frozen=True)
class Example:
    """A window: `start` and `stop` enclose the target's tokens in `ids`.

    `labels` are the distributions of the design's heads; `conversation` is the split key.
    """

    ids: tuple[int, ...]
    start: int
    stop: int
    labels: tuple[tuple[float, ...], ...]
    conversation: str = ""


@dataclass(frozen=True)
class Batch:
    """Padded windows: `ids`, `mask` and `target` [n, tokens] int64; `labels` by head [n, labels].

    `target` is 1 at the target's tokens.
    """

    ids: Tensor
    mask: Tensor
    target: Tensor
    labels: list[Tensor]


class Windows:
    """Makes windows from conversations, with a tokenizer whose special tokens are as in BERT."""

    def __init__(self, tokenizer: Tokenizer, design: Design) -> None:
        self.design = design
        self.tokenizer = tokenizer
        empty = tokenizer.encode("").ids
        self.first, self.separator = empty[0], empty[-1]
        self.roles = [self._plain(f"{name}:") for name in ROLE_NAMES]

    def _plain(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def examples(self, conversations: Sequence[Conversation]) -> list[Example]:
        """A window for each turn that has labels of all of the design's heads."""
        return [
            self.example(conversation.turns, position, conversation.split_key)
            for conversation in conversations
            for position, turn in enumerate(conversation.turns)
            if all(head in turn.labels for head in self.design.heads)
        ]

    def example(self, turns: Sequence[Turn], position: int, conversation: str = "") -> Example:
        """The window of the turn at `position`.

        In a window that is too long, preceding turns keep their last tokens and following ones
        their first: those nearest to the target.
        """
        target = turns[position]
        preceding = turns[max(0, position - self.design.before) : position]
        following = turns[position + 1 : position + 1 + self.design.after]
        own = self._plain(target.text)[: WINDOW_TOKENS // 2]
        before = [self._plain(turn.text) for turn in preceding]
        after = [self._plain(turn.text) for turn in following]
        marks = sum(len(self.roles[turn.role]) + 1 for turn in (*preceding, target, *following)) + 1
        room = WINDOW_TOKENS - len(own) - marks
        if sum(map(len, (*before, *after))) > room:
            share = room // (len(before) + len(after))
            before = [text[max(0, len(text) - share) :] for text in before]
            after = [text[:share] for text in after]
        ids = [self.first]
        for turn, text in zip(preceding, before, strict=True):
            ids += [*self.roles[turn.role], *text, self.separator]
        ids += self.roles[target.role]
        start = len(ids)
        ids += [*own, self.separator]
        for turn, text in zip(following, after, strict=True):
            ids += [*self.roles[turn.role], *text, self.separator]
        labels = tuple(target.labels[head] for head in self.design.heads if head in target.labels)
        return Example(tuple(ids), start, start + max(1, len(own)), labels, conversation)


def collate(examples: Sequence[Example]) -> Batch:
    """Pad the windows."""
    ids = [torch.tensor(example.ids) for example in examples]
    target = []
    for example in examples:
        row = torch.zeros(len(example.ids), dtype=torch.long)
        row[example.start : example.stop] = 1
        target.append(row)
    columns = zip(*(example.labels for example in examples), strict=True)
    return Batch(
        _padded(ids),
        _padded([torch.ones_like(row) for row in ids]),
        _padded(target),
        [torch.tensor(column) for column in columns],
    )


def _padded(rows: list[Tensor]) -> Tensor:
    return pad_sequence(rows, batch_first=True)
