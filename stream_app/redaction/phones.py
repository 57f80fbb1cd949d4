"""Telephone numbers in the formats of several countries."""

import re
from collections.abc import Iterator
from typing import Final

import phonenumbers

from stream_app.redaction.spans import Kind, Span

PHONE_REGIONS: Final = ("GB", "US", "DE")
"""Numbers possible in France, Spain, Italy, the Netherlands or Poland are possible in these."""
_PLACE = re.compile(r"\d(?:\D{0,20}\d){6,}")
_BESIDE: Final = 10
"""Characters before and behind that may belong to a telephone number."""
_FEWEST_DIGITS: Final = 7
_DATE = re.compile(
    r"(?:\d{1,2}[./-]\d{1,2}[./-](?:19|20)\d{2}|(?:19|20)\d{2}[./-]\d{1,2}[./-]\d{1,2}"
    r"|(?:19|20)\d{2}(?:\W{1,3}(?:19|20)\d{2})+)"
)


def phones(text: str) -> Iterator[Span]:
    """Numbers that could be dialled; only the surroundings of digits are searched."""
    for place in _PLACE.finditer(text):
        first = max(0, place.start() - _BESIDE)
        around = text[first : place.end() + _BESIDE]
        for region in PHONE_REGIONS:
            for match in phonenumbers.PhoneNumberMatcher(
                around, region, leniency=phonenumbers.Leniency.POSSIBLE
            ):
                if _is_phone(match.raw_string):
                    yield Span(first + match.start, first + match.end, Kind.PHONE)


def _is_phone(found: str) -> bool:
    """Not a date, a row of years or a number too short to be dialled from elsewhere."""
    digits = sum(char.isdigit() for char in found)
    return digits >= _FEWEST_DIGITS and not _DATE.fullmatch(found)
