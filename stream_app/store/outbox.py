"""The transactional outbox: messages written with their batch, deleted once published.

One row contains all messages of a batch. If a worker dies between commit and publishing, another
one publishes the row again; ids in the messages let consumers drop duplicates.
"""

import msgspec

from stream_app.core.ports import Message

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Message])


def pack(messages: list[Message]) -> bytes:
    """Encode messages."""
    return _encoder.encode(messages)


def unpack(raw: bytes) -> list[Message]:
    """Decode messages."""
    return _decoder.decode(raw)
