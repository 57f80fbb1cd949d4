"""Hides spans. Masks keep the length, so rationale offsets remain valid in the stored text."""

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Final

from stream_app.plain_text.copies import plain
from stream_app.plain_text.mapped import MASK
from stream_app.redaction.port import Redactor
from stream_app.redaction.spans import Span

_MOST_ROUNDS: Final = 4


def redact(text: str, redactor: Redactor) -> str:
    """``text`` with personal details masked; masking the result again changes nothing.

    Details are found in odd characters and within markup, too (``plain_text``). What is left beside
    a mask can look like another detail (the rest of a long number like a
    telephone number), so the search is repeated until it finds nothing.

    >>> from stream_app.redaction.rules import Rules
    >>> redact("Hi, I'm Joan, write to joan@example.org", Rules())
    "Hi, I'm ••••, write to ••••••••••••••••"
    """
    for _ in range(_MOST_ROUNDS):
        hidden = masked(text, _found(text, redactor))
        if hidden == text:
            break
        text = hidden
    return text


def _found(text: str, redactor: Redactor) -> Iterator[Span]:
    """Details in the text as it is, and in its copy in plain letters."""
    yield from redactor.find(text)
    copy = plain(text)
    if copy.text not in ("", text, text.strip()):
        for start, end, kind in redactor.find(copy.text):
            yield Span(*copy.span(start, end), kind)


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
