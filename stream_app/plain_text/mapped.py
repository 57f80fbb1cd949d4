"""A text that was made from another one, with the place of each character there."""

import re
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

Span = tuple[int, int]
"""Characters ``start`` up to ``end``."""

MASK: Final = "•"


class Mapped(Struct, frozen=True):
    """``text``, made from ``original``; without ``places`` both are the same.

    ``places``: of each character of ``text``, where it lies in the original; ascending.
    """

    text: str
    original: str
    places: list[Span] | None = None

    def span(self, start: int, end: int) -> Span:
        """Where these characters of ``text``, at least one, lie in the original."""
        if self.places is None:
            return start, end
        return self.places[start][0], self.places[end - 1][1]

    def spans(self, spans: Iterable[Span]) -> list[Span]:
        """Where several spans lie in the original."""
        return [self.span(start, end) for start, end in spans]

    def without(self, spans: Iterable[Span]) -> "Mapped":
        """Remove these characters of ``text``; the spans ascend and do not overlap."""
        return self.changed((start, end, "") for start, end in spans)

    def replaced(
        self, pattern: re.Pattern[str], new: str | Callable[[re.Match[str]], str]
    ) -> "Mapped":
        """Put another text for each match of a pattern; all of it lies where the match lies."""
        return self.changed(
            (*match.span(), new if isinstance(new, str) else new(match))
            for match in pattern.finditer(self.text)
        )

    def masked_as(self, masked: str) -> str:
        """``text`` with masks where ``masked``, which is as long as the original, has them."""
        if self.places is None:
            return masked
        return "".join(
            MASK if masked[start:end] != self.original[start:end] else letter
            for letter, (start, end) in zip(self.text, self.places, strict=True)
        )

    def changed(self, changes: Iterable[tuple[int, int, str]]) -> "Mapped":
        """Put other texts for these characters of ``text``: start, end and the text for each."""
        parts: list[str] = []
        places: list[Span] = []
        own = self.places
        done = 0
        for start, end, new in changes:
            if self.text[start:end] == new:
                continue
            if own is None:
                own = [(place, place + 1) for place in range(len(self.text))]
            parts += (self.text[done:start], new)
            places += own[done:start]
            if new:
                places += [(own[start][0], own[end - 1][1])] * len(new)
            done = end
        if own is None or not parts:
            return self
        return Mapped("".join((*parts, self.text[done:])), self.original, places + own[done:])
