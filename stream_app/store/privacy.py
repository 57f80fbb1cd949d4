"""What is done to a turn before it is persisted: redaction and pseudonyms.

Masks keep the length of what they hide, so that rationale offsets still fit the stored text.

The cost is bounded: of an event's 64 KiB, only the surroundings of digits are searched for
telephone numbers, and where there are many digits all of them are masked without a search.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Final

import phonenumbers
from msgspec import Struct
from stdnum import luhn

MASK: Final = "•"
PHONE_REGIONS: Final = ("GB", "US")
MOST_DIGITS: Final = 150
"""Digits of a turn that are searched for cards and telephone numbers; a dozen of them, or eight."""

_EMAIL = re.compile(r"(?<![\w.+%-])[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
_DIGITS = re.compile(r"\d(?:[ -]?\d){12,}")
_DIGIT = re.compile(r"\d")
_PHONE_PLACE = re.compile(r"\d(?:\D{0,20}\d){6,}")
_BESIDE_PHONE: Final = 10
"""Characters before and behind that may belong to a telephone number."""
_GROUP = re.compile(r"\d+")
_CARD_LENGTHS: Final = range(13, 20)
_INTRODUCTION = re.compile(
    r"\b(?:[Mm]y name(?:'s| is)|[Ii](?:'m| am) called|[Cc]all me|[Tt]his is|[Ii](?:'m| am))\s+"
    r"(?P<name>[A-Z][a-z]+(?:[ -][A-Z][a-z]+){0,2})\b"
)


class Privacy(Struct, frozen=True):
    """``key``: secret of the installation, makes pseudonyms; ``later``: keys of its rotations."""

    key: bytes
    redact: bool = True
    later: tuple[bytes, ...] = ()

    def pseudonym(self, speaker_id: str) -> str:
        """The same speaker always gets the same pseudonym; 32 hex digits."""
        name = speaker_id
        for key in (self.key, *self.later):
            name = pseudonym_of(name, key)
        return name

    def redacted(self, text: str) -> str:
        """``text`` with personal details masked, if redaction is on."""
        return redact(text) if self.redact else text


def pseudonym_of(name: str, key: bytes) -> str:
    """One step of the chain: a name, or the pseudonym under the key before, under this key."""
    return hashlib.blake2b(name.encode(), key=key[:64], digest_size=16).hexdigest()


def redact(text: str) -> str:
    """Mask e-mail addresses, card numbers, telephone numbers and names in introductions.

    In a turn with more than ``MOST_DIGITS`` digits all digits are masked.

    A name is found where someone gives it ("my name is …", "call me …"); a name that is only
    mentioned is not found.

    >>> redact("Hi, I'm Joan, write to joan@example.org")
    "Hi, I'm ••••, write to ••••••••••••••••"
    """
    text = _masked(text, _emails(text))
    without_digits = _DIGIT.sub(MASK, text)
    if without_digits.count(MASK) - text.count(MASK) > MOST_DIGITS:
        text = without_digits
    else:
        text = _masked(text, _cards(text))
        text = _masked(text, _phones(text))
    return _masked(text, _names(text))


def _masked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """``text`` with these spans hidden; they may overlap."""
    parts: list[str] = []
    done = 0
    for start, end in sorted(spans):
        if end > done:
            first = max(start, done)
            parts += (text[done:first], MASK * (end - first))
            done = end
    return "".join((*parts, text[done:]))


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
    for place in _PHONE_PLACE.finditer(text):
        first = max(0, place.start() - _BESIDE_PHONE)
        around = text[first : place.end() + _BESIDE_PHONE]
        for region in PHONE_REGIONS:
            for match in phonenumbers.PhoneNumberMatcher(
                around, region, leniency=phonenumbers.Leniency.POSSIBLE
            ):
                yield first + match.start, first + match.end


def _names(text: str) -> Iterator[tuple[int, int]]:
    yield from (match.span("name") for match in _INTRODUCTION.finditer(text))
