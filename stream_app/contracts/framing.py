"""The wire format of Confluent's schema registry, with JSON payloads.

A framed value is a zero byte, the id of its schema in the registry (four bytes, big-endian) and the
payload. JSON never starts with a zero byte, so framed and bare messages can share a topic, and a
reader needs no registry: the contract decides on a payload, not the schema that its id names.
"""

import struct
from typing import Final

_HEAD: Final = struct.Struct(">BI")
_MAGIC: Final = 0


def schema_id(value: bytes) -> int | None:
    """The schema's id in a framed value; None for any other value."""
    if len(value) < _HEAD.size or value[0] != _MAGIC:
        return None
    found: int = _HEAD.unpack_from(value)[1]
    return found


def unframed(value: bytes) -> bytes:
    r"""The payload of a framed value; any other value as it is.

    >>> unframed(b'\x00\x00\x00\x01\x02{}'), unframed(b"{}")
    (b'{}', b'{}')
    """
    return value if schema_id(value) is None else value[_HEAD.size :]
