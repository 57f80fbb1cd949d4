"""The word lists in ``gazetteer``, read once and shared."""

import unicodedata
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Final

from msgspec import Struct

FEELINGS: Final = frozenset(
    "angel amity bliss charity constance destiny faith felicity grace harmony heaven honey hope joy"
    " love melody mercy misty patience peace precious serenity sunny trinity verity".split()
)
"""Names that are also feelings; only clear evidence makes them a person."""


class Lexicon(Struct, frozen=True):
    """Case-folded words. ``given``: names that are no English words.

    ``word_names``: common given names that are also words, such as "mark". ``english_given``:
    names that are recognised in lower case, too. ``word_surnames``: as "baker".
    """

    words: frozenset[str]
    not_names: frozenset[str]
    given: frozenset[str]
    word_names: frozenset[str]
    english_given: frozenset[str]
    word_surnames: frozenset[str]
    places: frozenset[str]
    word_places: frozenset[str]


@cache
def lexicon() -> Lexicon:
    """The lists of this release."""
    words, not_names = _read("words"), _read("not_names")
    given, common = _folded(_read("given_names")), _read("common_names")
    usual = words | not_names
    return Lexicon(
        words=words,
        not_names=not_names,
        given=given - usual,
        word_names=(common & words) - not_names | {"may", "june", "april", "august"},
        english_given=frozenset(name for name in common - usual if len(name) > 3),
        word_surnames=_read("surnames"),
        places=_folded(_read("places")) - not_names,
        word_places=_read("word_places"),
    )


def _read(name: str) -> frozenset[str]:
    file = resources.files(__package__).joinpath("gazetteer", f"{name}.txt")
    return frozenset(file.read_text(encoding="utf-8").splitlines())


def _folded(names: Iterable[str]) -> frozenset[str]:
    """With each name as it is typed without accents, too."""
    listed = frozenset(names)
    return listed | {plain(name) for name in listed}


def plain(word: str) -> str:
    """``word`` without accents.

    >>> plain("zoë łucja")
    'zoe lucja'
    """
    parts = unicodedata.normalize("NFKD", word)
    return "".join(part for part in parts if not unicodedata.combining(part)).replace("ł", "l")
