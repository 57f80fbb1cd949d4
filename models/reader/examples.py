"""Examples for the reader, and their token ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from models.labels import CLIENT

CONTEXT_TURNS = 3
"""Preceding turns that the reader sees at most, as many as a window has."""
KEPT_TOKENS = 190
"""Tokens of a turn that a window keeps; the end of a longer one is cut."""
CONTEXT_TOKENS = 160
"""Tokens of the preceding turns together; the oldest are cut."""
TARGET_TOKENS = 96
"""Tokens of the turn that is read; the end is cut."""
CLIENT_TOKENS = 192
"""Tokens of a client turn that is read alone."""

BINARY = ("lapse", "emotional_opportunity", "interpretation_opportunity", "crisis")
"""Heads that answer yes or no."""

MITI_CODES = (
    "Advise with Permission",
    "Advise without Permission",
    "Affirm",
    "Closed Question",
    "Complex Reflection",
    "Confront",
    "Direct",
    "Emphasize Autonomy",
    "Give Information",
    "Open Question",
    "Other",
    "Self-Disclose",
    "Simple Reflection",
    "Support",
    "Warn",
)
"""Codes of Boosting-with-MI-Strategy's sentences, in the spelling of its file."""

ENTAILMENT = ("entailment", "neutral", "contradiction")

SCALES = {
    "rated": 3,
    "work": 2,
    "areas": 2,
    "turn_empathy": 6,
    "understood": 5,
    "exchange": 5,
    "marks": 6,
    "adherent": 2,
}
"""Ordered scales on which people (`marks`: a language model) judged answers, and their levels."""


@dataclass(frozen=True)
class Example:
    """One turn to read, with the turns before it and what is known about it.

    `key` decides the fold. `binary` maps heads of `BINARY` to the share of people who say yes.
    `grade` is a scale and a level on it, 0 for the lowest. `code` indexes `MITI_CODES`,
    `entailed` indexes `ENTAILMENT`. `pair` names two examples of which the one with
    `better` is the better answer (`kind` "answer") or the one that was given (`kind` "fit").
    `bias` is the log-odds that a model of the answer's words alone gives to being the better one.
    """

    corpus: str
    key: str
    role: int
    text: str
    turns: tuple[tuple[int, str], ...] = ()
    binary: dict[str, float] = field(default_factory=dict)
    grade: tuple[str, int] | None = None
    code: int | None = None
    entailed: int | None = None
    pair: str = ""
    kind: str = "answer"
    better: bool = False
    bias: float = 0.0


Tokenise = Callable[[str], list[int]]


@dataclass(frozen=True)
class Marks:
    """Special tokens of an encoder, and its words for the two roles."""

    start: int
    end: int
    between: tuple[int, ...]
    roles: tuple[list[int], list[int]]


def token_ids(example: Example, tokenise: Tokenise, marks: Marks) -> tuple[list[int], int]:
    """The ids of an example, and how many of them precede the turn that is read.

    `start` role turn role turn ... `between` role turn `end`; turns are cut from the left, the turn
    that is read from the right.
    """
    before: list[int] = []
    for role, text in reversed(example.turns[-CONTEXT_TURNS:]):
        room = CONTEXT_TOKENS - len(before)
        if room <= len(marks.roles[role]) + 1:
            break
        own = tokenise(text)[:KEPT_TOKENS]
        kept = own[-(room - len(marks.roles[role])) :]
        before = [*marks.roles[role], *kept, *before]
    limit = CLIENT_TOKENS if example.role == CLIENT and not before else TARGET_TOKENS
    target = [*marks.roles[example.role], *tokenise(example.text)[:limit]]
    first = [marks.start, *before, *marks.between]
    return [*first, *target, marks.end], len(first)


def pairs_of(examples: Sequence[Example]) -> list[tuple[int, int]]:
    """Positions of (better, worse) for every pair of which both are here."""
    found: dict[str, dict[bool, int]] = {}
    for place, example in enumerate(examples):
        if example.pair:
            found.setdefault(example.pair, {})[example.better] = place
    return [(both[True], both[False]) for both in found.values() if len(both) == 2]
