"""The input text: an instruction in four parts around the dialogue (Xu & Jiang 2024, section 4.3).

    domain       who speaks with whom
    definition   what the labels mean
    conversation the target and its neighbours, one line a turn, the target marked
    intent       the question about the target
    options      the words to answer with

Each part of the instruction can be left out; the conversation stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from research.instruction_seq2seq.tasks import Task
from research.second_coder.items import Item, Utterance

Part = Literal["domain", "definition", "intent", "options"]
PARTS: tuple[Part, ...] = get_args(Part)
MARK = "target"

Encode = Callable[[str], list[int]]
"""Token ids of a text, without special tokens."""


class InstructionError(ValueError):
    """An instruction leaves no room for the conversation."""


@dataclass(frozen=True)
class Form:
    """Form of the inputs: parts of the instruction, turns around the target, and tokens."""

    parts: tuple[Part, ...] = PARTS
    before: int = 3
    after: int = 3
    tokens: int = 512

    @property
    def words(self) -> str:
        """The parts in words, for tables."""
        if set(self.parts) == set(PARTS):
            return "whole"
        return ", ".join(part for part in PARTS if part in self.parts) or "none"


def head_of(task: Task, setting: str, parts: Collection[Part]) -> str:
    """What stands before the conversation."""
    lines = []
    if "domain" in parts:
        lines.append(f"{setting} Read what they say and code the turn marked as {MARK}.")
    if "definition" in parts:
        each = zip(task.verbalisers, task.definitions, strict=True)
        lines.append("Meaning of the codes. " + " ".join(f"{word}: {text}" for word, text in each))
    return "\n".join([*lines, "Conversation:\n"])


def tail_of(task: Task, parts: Collection[Part]) -> str:
    """What stands after the conversation."""
    lines = []
    if "intent" in parts:
        lines.append(f"Question: {task.question}")
    if "options" in parts:
        *most, last = task.verbalisers
        lines.append(f"Answer {', '.join(most)} or {last}.")
    return "\n".join(["", *lines])


def line_of(turn: Utterance, *, target: bool) -> tuple[str, str]:
    """A turn's beginning, which is always kept, and its text."""
    return (f"{turn.role} ({MARK}): " if target else f"{turn.role}: "), turn.text


def token_ids(task: Task, setting: str, item: Item, form: Form, encode: Encode) -> list[int]:
    """The whole input without special tokens, at most `form.tokens` of them.

    Where it is too long, the neighbours are cut first, each at the end that is far from the target,
    then the target's end.

    Raises:
        InstructionError: the instruction leaves no room for the conversation.
    """
    head, tail = encode(head_of(task, setting, form.parts)), encode(tail_of(task, form.parts))
    first = max(0, item.target - form.before)
    shown = item.turns[first : item.target + form.after + 1]
    place = item.target - first
    lines = [line_of(turn, target=number == place) for number, turn in enumerate(shown)]
    starts = [encode(f"\n{start}" if number else start) for number, (start, _) in enumerate(lines)]
    texts = [encode(text) for _, text in lines]
    room = form.tokens - len(head) - len(tail) - sum(map(len, starts))
    if room < 1:
        message = (
            f"the instruction of {task.name} leaves no room for the conversation in"
            f" {form.tokens} tokens: leave out a part, or allow more tokens"
        )
        raise InstructionError(message)
    texts = _within(texts, place, room)
    body = [token for pair in zip(starts, texts, strict=True) for part in pair for token in part]
    return [*head, *body, *tail]


def _within(texts: Sequence[list[int]], place: int, room: int) -> list[list[int]]:
    """The turns' tokens, cut to `room` in all."""
    if sum(map(len, texts)) <= room:
        return list(texts)
    target = texts[place][:room]
    others = len(texts) - 1
    left = room - len(target)
    share = left // others if others else 0
    found = []
    for number, text in enumerate(texts):
        if number == place:
            found.append(target)
        elif number < place:
            found.append(text[len(text) - share :] if len(text) > share else text)
        else:
            found.append(text[:share])
    return found
