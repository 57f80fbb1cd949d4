"""The transactional outbox: messages written with their batch, deleted once published.

One row contains all messages of a batch. If a worker dies between commit and publishing, another
one publishes the row again; ids in the messages let consumers drop duplicates. Rows are compressed,
as the messages of a batch repeat each other; those of earlier releases are not.
"""

import zlib
from collections.abc import Sequence
from functools import cache
from typing import Final

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.core.session.ports import Message
from stream_app.store.database import tables
from stream_app.store.database.statements import Statement, compiled

LEVEL: Final = 4
"""A tenth smaller than the fastest, for some microseconds a turn."""
ZLIB: Final = b"\x78"
"""How compressed bytes begin; MessagePack arrays begin otherwise."""
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Message])


def pack(messages: list[Message]) -> bytes:
    """Encode messages."""
    return zlib.compress(_encoder.encode(messages), LEVEL)


def delete(connection: Connection, outbox_ids: Sequence[int], dialect: str) -> None:
    """Delete rows (at least one) after their messages were published."""
    _delete(dialect).run(connection, [{"id": each} for each in outbox_ids])


@cache
def _delete(dialect: str) -> Statement:
    table = tables.outbox
    statement = sa.delete(table).where(table.c.id == sa.bindparam("b_id"))
    return compiled(statement, table, dialect, prefix="b_")


def unpack(raw: bytes) -> list[Message]:
    """Decode messages."""
    return _decoder.decode(zlib.decompress(raw) if raw.startswith(ZLIB) else raw)
