"""Card numbers and IBANs, by their check digits."""

import re
from collections.abc import Iterator
from typing import Final

from stdnum import iban, luhn

from stream_app.redaction.spans import Kind, Span

_CARD_PLACE = re.compile(r"\d(?:[ -]?\d){12,}")
_GROUP = re.compile(r"\d+")
_CARD_LENGTHS: Final = range(13, 20)
_IBAN_PLACE = re.compile(r"(?<![^\W_])[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,30}")
_IBAN_LENGTHS: Final = range(15, 35)


def cards(text: str) -> Iterator[Span]:
    """Whole groups of digits that make a card number; an expiry date or code may follow it."""
    for match in _CARD_PLACE.finditer(text):
        yield from _cards_among(list(_GROUP.finditer(text, *match.span())))


def _cards_among(groups: list[re.Match[str]]) -> Iterator[Span]:
    first = 0
    while first < len(groups):
        digits, found = "", first
        for last in range(first, len(groups)):
            digits += groups[last].group()
            if len(digits) > _CARD_LENGTHS[-1]:
                break
            if len(digits) in _CARD_LENGTHS and luhn.is_valid(digits):
                found = last + 1
                yield Span(groups[first].start(), groups[last].end(), Kind.CARD)
        first = max(found, first + 1)


def ibans(text: str) -> Iterator[Span]:
    """IBANs of any country, in groups or not; words may follow them."""
    for place in _IBAN_PLACE.finditer(text):
        signs = [at for at in range(*place.span()) if text[at].isalnum()]
        for length in reversed(_IBAN_LENGTHS):
            if length <= len(signs) and _is_iban("".join(text[at] for at in signs[:length])):
                yield Span(place.start(), signs[length - 1] + 1, Kind.IBAN)
                break


def _is_iban(compact: str) -> bool:
    return compact.isascii() and iban.is_valid(compact, check_country=False)
