"""The default redactor: recognisers without a model, light and linear in the text's length.

The cost is bounded: numbers are searched near digits only, and in a text with more than
``MOST_DIGITS`` digits all of them are masked without a search. So are words that can be names in
a text with more than ``tokens.MOST_CANDIDATES`` of them.
"""

import re
from collections.abc import Iterator
from typing import Final

from stream_app.redaction.bank import cards, ibans
from stream_app.redaction.birth_dates import birth_dates
from stream_app.redaction.formal import formal
from stream_app.redaction.lexicon import lexicon
from stream_app.redaction.national_ids import national_ids
from stream_app.redaction.near import merged
from stream_app.redaction.online import online
from stream_app.redaction.people import people
from stream_app.redaction.phones import phones
from stream_app.redaction.places import places
from stream_app.redaction.postal import addresses, streets
from stream_app.redaction.references import references
from stream_app.redaction.spans import Kind, Span
from stream_app.redaction.tokens import Tokens

MOST_DIGITS: Final = 150
_DIGITS = re.compile(r"\d+")
_BESIDE_DIGITS: Final = 120
"""Characters around a digit that may belong to the same address or number."""


class Rules:
    """Finds details by their form, by check digits, by word lists and by the words around them."""

    def find(self, text: str) -> Iterator[Span]:
        """All spans that any recogniser finds."""
        yield from online(text)
        yield from _with_digits(text)
        yield from birth_dates(text)
        yield from streets(text)
        words = lexicon()
        tokens = Tokens(text, words)
        yield from (Span(*place, Kind.MENTIONED_NAME) for place in tokens.too_many)
        yield from people(text, tokens, words)
        yield from formal(text, words)
        yield from places(text, tokens, words)


def _with_digits(text: str) -> Iterator[Span]:
    digits = list(_DIGITS.finditer(text))
    if sum(match.end() - match.start() for match in digits) > MOST_DIGITS:
        yield from (Span(*match.span(), Kind.OTHER_ID) for match in digits)
        return
    near = list(merged((match.start() for match in digits), _BESIDE_DIGITS, _BESIDE_DIGITS))
    if near:
        for recogniser in (cards, ibans, phones):
            yield from recogniser(text)
        for recogniser_near in (national_ids, references, addresses):
            yield from recogniser_near(text, near)
