"""Readable short forms of pseudonyms: two pronounceable words for the first eight hex digits.

The words are proquints (Wilkerson 2009, https://arxiv.org/abs/0901.4016): five letters for 16 bits,
consonants for four bits and vowels for two.
"""

import re
from functools import cache
from typing import Final

HEX_DIGITS: Final = 8
"""Hex digits of a pseudonym that its short form has."""
_CONSONANTS: Final = "bdfghjklmnprstvz"
_VOWELS: Final = "aiou"
_SHIFTS: Final = (
    (12, _CONSONANTS),
    (10, _VOWELS),
    (6, _CONSONANTS),
    (4, _VOWELS),
    (0, _CONSONANTS),
)
_WORD: Final = f"[{_CONSONANTS}][{_VOWELS}][{_CONSONANTS}][{_VOWELS}][{_CONSONANTS}]"
_SHORT: Final = re.compile(f"{_WORD}-{_WORD}")
_PSEUDONYM: Final = re.compile(r"[0-9a-f]{8}")
_HEX: Final = re.compile(r"[0-9a-f]{6,}")


def short_form(pseudonym: str) -> str:
    """The short form; of anything that is no pseudonym, its first characters.

    >>> short_form("7f0000013ac4e5d6"), short_form("noor")
    ('lusab-babad', 'noor')
    """
    head = pseudonym[:HEX_DIGITS]
    if not _PSEUDONYM.fullmatch(head):
        return head
    return f"{_word(int(head[:4], 16))}-{_word(int(head[4:], 16))}"


def hex_prefix(given: str) -> str | None:
    """The digits with which a pseudonym of this short form begins; None if it is none.

    At least six of a pseudonym's own digits are a short form, too.

    >>> hex_prefix("lusab-babad"), hex_prefix("7f0000"), hex_prefix("noor")
    ('7f000001', '7f0000', None)
    """
    given = given.strip().lower()
    if _SHORT.fullmatch(given):
        first, second = given.split("-")
        return f"{_number(first):04x}{_number(second):04x}"
    return given if _HEX.fullmatch(given) else None


@cache
def _word(number: int) -> str:
    return "".join(letters[(number >> shift) & (len(letters) - 1)] for shift, letters in _SHIFTS)


def _number(word: str) -> int:
    places = zip(word, _SHIFTS, strict=True)
    return sum(letters.index(letter) << shift for letter, (shift, letters) in places)
