"""The default redactor: recognisers without a model, light and linear in the text's length.

Of an event's 64 KiB only few digits are searched for numbers: with more than ``MOST_DIGITS`` all
digits are masked without a search, so the cost stays bounded.
"""

import re
from collections.abc import Iterator
from typing import Final

from stream_app.redaction.bank import cards, ibans
from stream_app.redaction.birth_dates import birth_dates
from stream_app.redaction.national_ids import national_ids
from stream_app.redaction.online import online
from stream_app.redaction.people import people
from stream_app.redaction.phones import phones
from stream_app.redaction.places import places
from stream_app.redaction.postal import addresses
from stream_app.redaction.references import references
from stream_app.redaction.spans import Kind, Span

MOST_DIGITS: Final = 150
_DIGITS = re.compile(r"\d+")
_OF_DIGITS: Final = (cards, ibans, phones, national_ids, references)


class Rules:
    """Finds details by their form, by check digits, by word lists and by the words around them."""

    def find(self, text: str) -> Iterator[Span]:
        """All spans that any recogniser finds."""
        digits = list(_DIGITS.finditer(text))
        count = sum(match.end() - match.start() for match in digits)
        yield from online(text)
        if count > MOST_DIGITS:
            yield from (Span(*match.span(), Kind.OTHER_ID) for match in digits)
        elif count:
            for recogniser in _OF_DIGITS:
                yield from recogniser(text)
        yield from birth_dates(text)
        yield from addresses(text)
        yield from people(text)
        yield from places(text)
