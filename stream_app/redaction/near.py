"""Where in a text a pattern is searched: near the words or digits that it needs.

A case-insensitive pattern of many words costs about a microsecond a character, ``str.find`` a
thousandth of that.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

Places: TypeAlias = Sequence[tuple[int, int]]
"""Parts of a text: from, to."""


def matches(
    pattern: re.Pattern[str], text: str, places: Iterable[tuple[int, int]]
) -> Iterator[re.Match[str]]:
    """Matches that lie within one of these parts of the text."""
    for start, end in places:
        yield from pattern.finditer(text, start, end)


def near_words(
    text: str, words: Sequence[str], before: int, behind: int, *, beginnings: bool = False
) -> Iterator[tuple[int, int]]:
    """Parts of the text around these words (in lower case), merged where they touch.

    ``beginnings``: only where a word of the text begins with one of them.
    """
    lower = lowered(text)
    found: list[int] = []
    for word in words:
        if word not in lower:  # the usual case; faster than a call of ``find``
            continue
        at = lower.find(word)
        while at >= 0:
            if not (beginnings and at and (lower[at - 1].isalnum() or lower[at - 1] == "_")):
                found.append(at)
            at = lower.find(word, at + len(word))
    return merged(sorted(found), before, behind)


def merged(found: Iterable[int], before: int, behind: int) -> Iterator[tuple[int, int]]:
    """Parts of a text around ascending places, merged where they touch.

    >>> list(merged([5, 9, 40], 3, 6))
    [(2, 15), (37, 46)]
    """
    start, end = 0, -1
    for at in found:
        if end >= 0 and at - before <= end:
            end = at + behind
            continue
        if end >= 0:
            yield start, end
        start, end = max(0, at - before), at + behind
    if end >= 0:
        yield start, end


@lru_cache(1)  # a dozen recognisers search the same text
def lowered(text: str) -> str:
    """``text`` in lower case, each character in its place."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
