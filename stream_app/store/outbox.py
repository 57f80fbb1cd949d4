"""Messages that leave with a batch: written in its transaction, deleted once they are out.

One row holds all messages of a batch. Whoever finds a row that its owner left behind (it died
between commit and publication) sends it again; ids in the messages let a consumer drop repeats.
"""

import msgspec

from stream_app.core.ports import Message

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Message])


def pack(messages: list[Message]) -> bytes:
    """Messages as bytes."""
    return _encoder.encode(messages)


def unpack(raw: bytes) -> list[Message]:
    """Messages from bytes."""
    return _decoder.decode(raw)
