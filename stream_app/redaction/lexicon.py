"""The word lists in ``gazetteer``, read once and shared."""

import unicodedata
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Final

from msgspec import Struct

from stream_app.redaction.vocabulary import vocabulary

FEELINGS: Final = vocabulary("lexicon", "feelings")
"""Names that are also feelings; only clear evidence makes them a person."""


class Lexicon(Struct, frozen=True):
    """Case-folded words. ``given``: names that are no English words.

    ``word_names``: common given names that are also words, such as "mark". ``english_given``:
    names that are recognised in lower case, too. ``word_surnames``: as "baker".
    ``words_in_names``: English words that a name of a person or town can begin with, as "new".
    """

    words: frozenset[str]
    not_names: frozenset[str]
    given: frozenset[str]
    word_names: frozenset[str]
    english_given: frozenset[str]
    word_surnames: frozenset[str]
    places: frozenset[str]
    word_places: frozenset[str]
    words_in_names: frozenset[str]


@cache
def lexicon() -> Lexicon:
    """The lists of this release."""
    words, not_names = _read("words"), _read("not_names")
    given, common = _folded(_read("given_names")), _read("common_names")
    places, word_places = _folded(_read("places")) - not_names, _read("word_places")
    surnames = _read("surnames")
    usual = words | not_names
    word_names = (common & words) - not_names | {"may", "june", "april", "august"}
    first_words = {name.split(" ", 1)[0] for name in places if " " in name} - {"the"}
    return Lexicon(
        words=words,
        not_names=not_names,
        given=given - usual,
        word_names=word_names,
        english_given=frozenset(name for name in common - usual if len(name) > 3),
        word_surnames=surnames,
        places=places,
        word_places=word_places,
        words_in_names=word_names | surnames | word_places | (first_words & words),
    )


def _read(name: str) -> frozenset[str]:
    file = resources.files(__package__).joinpath("gazetteer", f"{name}.txt")
    return frozenset(file.read_text(encoding="utf-8").splitlines())


def _folded(names: Iterable[str]) -> frozenset[str]:
    """Add each name as it is typed without accents."""
    listed = frozenset(names)
    return listed | {plain(name) for name in listed}


def plain(word: str) -> str:
    """``word`` without accents.

    >>> plain("zoë łucja")
    'zoe lucja'
    """
    parts = unicodedata.normalize("NFKD", word)
    return "".join(part for part in parts if not unicodedata.combining(part)).replace("ł", "l")
