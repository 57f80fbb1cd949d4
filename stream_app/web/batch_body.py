"""Splits the body of a batch into events: counted first, so that no body makes more work."""

import re
from typing import Final

import msgspec

MOST_TOKENS: Final = 200_000
"""Brackets and commas of a batch; 500 events have some 20,000."""

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
"""A string, closed or not, or a character of JSON's structure."""
_LINE = re.compile(rb"[^\n]+")
_list_of_raw: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])


class TooMany(Exception):
    """More events than allowed, or a structure as large as no batch has."""


class NoArray(Exception):
    """Not a JSON array."""


def of_array(body: bytes, most: int) -> list[bytes]:
    """The elements of a JSON array, byte by byte as they came.

    Raises:
        TooMany: there are more than ``most``.
        NoArray: it is none.
    """
    _count(body, most)
    try:
        return [bytes(value) for value in _list_of_raw.decode(body)]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise NoArray from None


def of_lines(body: bytes, most: int) -> list[bytes]:
    """The lines that are not blank.

    Raises:
        TooMany: there are more than ``most``.
    """
    found = []
    for match in _LINE.finditer(body):
        if match[0].strip():
            found.append(match[0])
            if len(found) > most:
                raise TooMany
    return found


def _count(body: bytes, most: int) -> None:
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
        if commas >= most or number > MOST_TOKENS:
            raise TooMany
