"""Splits the body of a batch into events, counting them first to bound the work."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from stream_app.contracts import surrogates
from stream_app.contracts.json_bytes import as_utf8, without_mark

MAX_TOKENS: Final = 200_000
"""Maximum number of strings, brackets and commas in a batch; 500 events have about 20,000."""

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
"""A string, terminated or not, or a structural character of JSON."""
_LINE = re.compile(rb"[^\n\r]+")
_list_of_raw: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])


class TooManyEvents(Exception):
    """The body has more events or more JSON tokens than a batch may have."""


class NotAnArray(Exception):
    """The body is not a JSON array."""


def split_array(body: bytes, limit: int) -> list[bytes]:
    """Split a JSON array into its elements, as the bytes that were sent.

    Raises:
        TooManyEvents: there are more than ``limit`` elements or ``MAX_TOKENS`` tokens.
        NotAnArray: the body is not a JSON array.
    """
    body = as_utf8(body)
    check_size(body, limit)
    return elements(body)


def elements(body: bytes) -> list[bytes]:
    """The elements of a JSON array in UTF-8, as the bytes that were sent.

    Raises:
        NotAnArray: the body is not a JSON array.
    """
    try:
        return _elements(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    legible = masked(body)
    try:
        return originals(body, legible, _elements(legible))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise NotAnArray from None


def _elements(body: bytes) -> list[bytes]:
    return [bytes(value) for value in _list_of_raw.decode(body)]


def masked(body: bytes) -> bytes:
    r"""The body with question marks for lone surrogates and for what is not UTF-8; as long.

    One event with half an emoji must not refuse the others of its batch.

    >>> masked(rb'["\ud83d", "\ud83d\ude00"]').decode()
    '["\\u003f", "\\ud83d\\ude00"]'
    """
    text = body.decode("utf-8", "surrogateescape").encode("utf-8", "replace")
    return surrogates.masked(text)


def originals(body: bytes, legible: bytes, parts: Sequence[bytes], start: int = 0) -> list[bytes]:
    """The bytes that were sent, of consecutive parts of ``masked(body)`` after ``start``."""
    found = []
    for part in parts:
        start = legible.index(part, start)
        found.append(body[start : start + len(part)])
        start += len(part)
    return found


def split_lines(body: bytes, limit: int) -> list[bytes]:
    """Split JSON lines, skipping blank lines.

    Raises:
        TooManyEvents: there are more than ``limit`` lines.
    """
    found = []
    for match in _LINE.finditer(as_utf8(body)):
        line = without_mark(match[0])
        if line.strip():
            found.append(line)
            if len(found) > limit:
                raise TooManyEvents
    return found


def check_size(body: bytes, limit: int) -> None:
    """Count elements and tokens without decoding them.

    Raises:
        TooManyEvents: there are more than ``limit`` elements or ``MAX_TOKENS`` tokens.
    """
    depth, commas = 0, 0
    for number, token in enumerate(_TOKEN.finditer(body)):
        match body[token.start()]:
            case 0x5B | 0x7B:
                depth += 1
            case 0x5D | 0x7D:
                depth -= 1
            case 0x2C if depth == 1:
                commas += 1
            case _:
                pass
        if commas >= limit or number > MAX_TOKENS:
            raise TooManyEvents
