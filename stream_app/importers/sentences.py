"""Splits long speech at sentence ends, so that the model reads every word of it."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

import sentencex

from stream_app.inference.bundles.bundle import DEFAULT_BUNDLE, load
from stream_app.inference.tokenizer import TextTokenizer

Fits = Callable[[str], bool]
"""Whether the model reads a text to its end."""
ENGLISH: Final = "en"
_WORD: Final = re.compile(r"\S+")


@cache
def fits_default_bundle() -> Fits:
    """Whether the text fits the default bundle's encoder."""
    bundle = load(DEFAULT_BUNDLE)
    tokens = bundle.manifest.encoder.max_tokens
    tokenizer = TextTokenizer(bundle.file(bundle.manifest.tokenizer.file), tokens)
    return lambda text: not tokenizer.tokenize([text])[0].truncated


def parts(text: str, fits: Fits, language: str = ENGLISH) -> list[str]:
    """A text in parts that fit, as they stand in it: as many whole sentences each as possible.

    A sentence that does not fit is split between words.

    >>> parts("One two. Three four! Five", lambda text: len(text.split()) <= 4)
    ['One two. Three four!', 'Five']
    >>> parts("a b c d e. f", lambda text: len(text.split()) <= 2)
    ['a b', 'c d', 'e. f']
    """
    return [text[start:end] for start, end in spans(text, fits, language)]


def spans(text: str, fits: Fits, language: str = ENGLISH) -> list[tuple[int, int]]:
    """Where the ``parts`` of a text begin and end."""
    if fits(text):
        return [(0, len(text))]
    found: list[tuple[int, int]] = []
    for start, end in _pieces(text, fits, language):
        if found and fits(text[found[-1][0] : end]):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _pieces(text: str, fits: Fits, language: str) -> Iterator[tuple[int, int]]:
    """Sentences that fit, and the words of those that do not."""
    position = 0
    for sentence in map(str.strip, sentencex.segment(language, text)):
        start = text.find(sentence, position)
        if not sentence or start < 0:
            continue
        yield from _words(text, position, start)
        position = start + len(sentence)
        yield from [(start, position)] if fits(sentence) else _words(text, start, position)
    yield from _words(text, position, len(text))


def _words(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for word in _WORD.finditer(text, start, end):
        yield word.span()
