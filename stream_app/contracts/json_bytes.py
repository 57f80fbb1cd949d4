"""JSON as programs write it: with a byte order mark, or in UTF-16 or UTF-32."""

import codecs
import json
from typing import Final

_READ: Final = frozenset(b'{["')


def without_mark(raw: bytes) -> bytes:
    r"""Remove the byte order mark of UTF-8.

    >>> without_mark(b"\xef\xbb\xbf{}"), without_mark(b"{}")
    (b'{}', b'{}')
    """
    return raw.removeprefix(codecs.BOM_UTF8)


def as_utf8(raw: bytes) -> bytes:
    r"""Recode UTF-16 or UTF-32 as UTF-8 without a mark; leave anything else as it is.

    JSON begins with ASCII, so zero bytes at the start tell its encoding (RFC 4627, section 3).

    >>> as_utf8("[1]".encode("utf-16")), as_utf8("{}".encode("utf-16-be")), as_utf8(b"\xe9")
    (b'[1]', b'{}', b'\xe9')
    """
    encoding = json.detect_encoding(raw[:4])
    if encoding.startswith("utf-8"):
        return without_mark(raw)
    try:
        text = raw.decode(encoding, "surrogatepass").lstrip()
    except UnicodeDecodeError:
        return raw
    found = text.encode("utf-8", "surrogatepass")  # which is no UTF-8: one event's fault
    return found if found[:1] and found[0] in _READ else raw
