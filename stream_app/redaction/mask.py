"""Hides spans. Masks keep the length, so rationale offsets remain valid in the stored text."""

from collections.abc import Iterable
from operator import itemgetter
from typing import Final

from stream_app.redaction.port import Redactor
from stream_app.redaction.spans import Span

MASK: Final = "•"
_MOST_ROUNDS: Final = 4


def redact(text: str, redactor: Redactor) -> str:
    """``text`` with personal details masked; masking the result again changes nothing.

    What is left beside a mask can look like another detail (the rest of a long number like a
    telephone number), so the search is repeated until it finds nothing.

    >>> from stream_app.redaction.rules import Rules
    >>> redact("Hi, I'm Joan, write to joan@example.org", Rules())
    "Hi, I'm ••••, write to ••••••••••••••••"
    """
    for _ in range(_MOST_ROUNDS):
        hidden = masked(text, redactor.find(text))
        if hidden == text:
            break
        text = hidden
    return text


def masked(text: str, spans: Iterable[Span]) -> str:
    """``text`` with these spans hidden; they may overlap."""
    parts: list[str] = []
    done = 0
    for start, end, _ in sorted(spans, key=itemgetter(0, 1)):
        if end > done:
            first = max(start, done)
            parts += (text[done:first], MASK * (end - first))
            done = end
    return "".join((*parts, text[done:]))
