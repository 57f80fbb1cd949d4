"""Offsets in UTF-16 code units, for programs whose strings consist of them, such as JavaScript."""

from collections.abc import Iterable

from stream_app.contracts.scores import Span


def utf16_spans(text: str, spans: Iterable[Span]) -> list[Span]:
    """Spans in code points of ``text`` as spans in its UTF-16 code units.

    >>> utf16_spans("😭 so sorry", [(0, 1), (2, 10)])
    [(0, 2), (3, 11)]
    """
    if not text or max(text) <= "\uffff":
        return [(start, end) for start, end in spans]
    return [(_units(text[:start]), _units(text[:end])) for start, end in spans]


def _units(text: str) -> int:
    return len(text) + sum(letter > "\uffff" for letter in text)
