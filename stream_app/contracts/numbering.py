"""Turns without ``seq``: programs may send them to ``rapport web``, which numbers them.

On the topic every turn has its number. The number is inserted into the bytes that were sent;
everything else in them stays as it is.
"""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from stream_app.contracts.json_bytes import without_mark

MAX_SEQ: Final = 2**31 - 1


class _Head(Struct):
    """The two fields that decide; raw, so that any value passes."""

    type: Raw = Raw(b"")
    seq: Raw = Raw(b"")


_decoder: msgspec.json.Decoder[_Head] = msgspec.json.Decoder(_Head)


def lacks_seq(raw: bytes) -> bool:
    """Whether this is a turn without the field ``seq``; a turn with ``"seq": null`` has one.

    >>> lacks_seq(b'{"type": "turn"}'), lacks_seq(b'{"type": "turn", "seq": null}')
    (True, False)
    >>> lacks_seq(b'{"type": "session_end"}'), lacks_seq(b"{")
    (False, False)
    """
    try:
        head = _decoder.decode(without_mark(raw))
        return not bytes(head.seq) and msgspec.json.decode(head.type) == "turn"
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def with_seq(raw: bytes, seq: int) -> bytes:
    """The same turn with its number.

    >>> with_seq(b' {"type": "turn"}', 3)
    b'{"seq":3,"type": "turn"}'
    """
    return b'{"seq":%d,' % seq + without_mark(raw).lstrip(b" \t\r\n")[1:]
