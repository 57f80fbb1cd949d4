"""Splits long speech at sentence ends, so that the model reads every word of it."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

import sentencex

from stream_app.inference.bundle import DEFAULT_BUNDLE, load
from stream_app.inference.tokenizer import TextTokenizer

Fits = Callable[[str], bool]
"""Whether the model reads a text to its end."""
ENGLISH: Final = "en"


@cache
def fits_default_bundle() -> Fits:
    """Of the default bundle's encoder."""
    bundle = load(DEFAULT_BUNDLE)
    tokens = bundle.manifest.encoder.max_tokens
    tokenizer = TextTokenizer(bundle.file(bundle.manifest.tokenizer.file), tokens)
    return lambda text: not tokenizer.tokenize([text])[0].truncated


def parts(text: str, fits: Fits, language: str = ENGLISH) -> list[str]:
    """A text in parts that fit: as many whole sentences each as possible.

    A sentence that does not fit is split between words.

    >>> parts("One two. Three four! Five", lambda text: len(text.split()) <= 4)
    ['One two. Three four!', 'Five']
    >>> parts("a b c d e. f", lambda text: len(text.split()) <= 2)
    ['a b', 'c d', 'e. f']
    """
    if fits(text):
        return [text]
    found: list[str] = []
    for piece in _pieces(text, fits, language):
        if found and fits(longer := f"{found[-1]} {piece}"):
            found[-1] = longer
        else:
            found.append(piece)
    return found


def _pieces(text: str, fits: Fits, language: str) -> Iterator[str]:
    """Sentences that fit, and the words of those that do not."""
    for sentence in sentencex.segment(language, text):
        if bare := sentence.strip():
            yield from [bare] if fits(bare) else bare.split()
