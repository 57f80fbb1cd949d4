"""The transactional outbox: messages written with their batch, deleted once published.

One row contains all messages of a batch. If a worker dies between commit and publishing, another
one publishes the row again; ids in the messages let consumers drop duplicates. Rows are compressed,
as the messages of a batch repeat each other; those of earlier releases are not.
"""

import zlib
from typing import Final

import msgspec

from stream_app.core.ports import Message

FASTEST: Final = 1
ZLIB: Final = b"\x78"
"""How compressed bytes begin; MessagePack arrays begin otherwise."""
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Message])


def pack(messages: list[Message]) -> bytes:
    """Encode messages."""
    return zlib.compress(_encoder.encode(messages), FASTEST)


def unpack(raw: bytes) -> list[Message]:
    """Decode messages."""
    return _decoder.decode(zlib.decompress(raw) if raw.startswith(ZLIB) else raw)
