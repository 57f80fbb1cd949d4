"""What is done to a turn before it is persisted: redaction and pseudonyms.

Masks keep the length of what they hide, so that rationale offsets still fit the stored text.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Final

import phonenumbers
from msgspec import Struct
from stdnum import luhn

MASK: Final = "•"
PHONE_REGIONS: Final = ("GB", "US")

_EMAIL = re.compile(r"(?<![\w.+%-])[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
_DIGITS = re.compile(r"\d(?:[ -]?\d){12,}")
_DIGIT = re.compile(r"\d")
_GROUP = re.compile(r"\d+")
_CARD_LENGTHS: Final = range(13, 20)
_INTRODUCTION = re.compile(
    r"\b(?:[Mm]y name(?:'s| is)|[Ii](?:'m| am) called|[Cc]all me|[Tt]his is|[Ii](?:'m| am))\s+"
    r"(?P<name>[A-Z][a-z]+(?:[ -][A-Z][a-z]+){0,2})\b"
)


class Privacy(Struct, frozen=True):
    """``key``: secret of the installation, makes pseudonyms."""

    key: bytes
    redact: bool = True

    def pseudonym(self, speaker_id: str) -> str:
        """The same speaker always gets the same pseudonym; 32 hex digits."""
        keyed = hashlib.blake2b(speaker_id.encode(), key=self.key[:64], digest_size=16)
        return keyed.hexdigest()

    def redacted(self, text: str) -> str:
        """``text`` with personal details masked, if redaction is on."""
        return redact(text) if self.redact else text


def redact(text: str) -> str:
    """Mask e-mail addresses, card numbers, telephone numbers and names in introductions.

    A name is found where someone gives it ("my name is …", "call me …"); a name that is only
    mentioned is not found.

    >>> redact("Hi, I'm Joan, write to joan@example.org")
    "Hi, I'm ••••, write to ••••••••••••••••"
    """
    for find in _FINDERS:
        for start, end in find(text):
            text = text[:start] + MASK * (end - start) + text[end:]
    return text


def _emails(text: str) -> Iterator[tuple[int, int]]:
    if "@" in text:
        yield from (match.span() for match in _EMAIL.finditer(text))


def _cards(text: str) -> Iterator[tuple[int, int]]:
    for match in _DIGITS.finditer(text):
        yield from _cards_among(list(_GROUP.finditer(text, *match.span())))


def _cards_among(groups: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Whole groups of digits that make a card number; an expiry date or code may follow it."""
    first = 0
    while first < len(groups):
        digits, found = "", first
        for last in range(first, len(groups)):
            digits += groups[last].group()
            if len(digits) > _CARD_LENGTHS[-1]:
                break
            if len(digits) in _CARD_LENGTHS and luhn.is_valid(digits):
                found = last + 1
                yield groups[first].start(), groups[last].end()
        first = max(found, first + 1)


def _phones(text: str) -> Iterator[tuple[int, int]]:
    if _DIGIT.search(text) is None or sum(char.isdigit() for char in text) < 7:
        return
    for region in PHONE_REGIONS:
        for match in phonenumbers.PhoneNumberMatcher(
            text, region, leniency=phonenumbers.Leniency.POSSIBLE
        ):
            yield match.start, match.end


def _names(text: str) -> Iterator[tuple[int, int]]:
    yield from (match.span("name") for match in _INTRODUCTION.finditer(text))


_FINDERS: Final[tuple[Callable[[str], Iterator[tuple[int, int]]], ...]] = (
    _emails,
    _cards,
    _phones,
    _names,
)
