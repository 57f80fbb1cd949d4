"""The consumer group's offsets, stored in the transaction of each batch.

A batch is committed to the database before it is acknowledged to the brokers. So the stored offsets
are never behind the brokers', unless the database was restored from a backup; the log is then
re-read from the stored offsets. ``stored_positions`` detects it while a worker runs.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
import sqlalchemy as sa
from msgspec import Struct

from stream_app.store.database import tables
from stream_app.store.stream.repository import Store

ADOPT_OFFSETS: Final = "log_positions"
"""Row of ``installation`` in databases that were filled before this table existed."""

TopicPartition = tuple[str, int]
"""Topic and partition number."""


class StartOffsets(Struct, frozen=True):
    """``offsets``: where to start. ``rewound``: those of them below the acknowledged offset.

    ``stored``: the offsets that the database contains, 0 for unknown partitions.
    """

    offsets: dict[TopicPartition, int]
    rewound: dict[TopicPartition, int]
    stored: dict[TopicPartition, int]


def stored_offsets(store: Store, group: str, topics: Sequence[str]) -> dict[TopicPartition, int]:
    """The next offset of each partition with stored events."""
    table = tables.log_positions
    query = sa.select(table.c.topic, table.c.partition, table.c.next_offset).where(
        table.c.consumer_group == group, table.c.topic.in_(topics)
    )
    with store.reading() as connection:
        return {(row.topic, row.partition): row.next_offset for row in connection.execute(query)}


def adopts_broker_offsets(store: Store) -> bool:
    """Whether partitions without a stored offset start at the brokers' (after an upgrade)."""
    table = tables.installation
    query = sa.select(table.c.value).where(table.c.name == ADOPT_OFFSETS)
    with store.reading() as connection:
        return connection.scalar(query) is not None


def start_offsets(
    store: Store, group: str, committed: Mapping[TopicPartition, int | None], now: datetime
) -> StartOffsets:
    """Where to start, given the offsets that the group has acknowledged to the brokers.

    A partition without a stored offset starts at 0, unless the database is older than this table.
    """
    known = stored_offsets(store, group, list({topic for topic, _ in committed}))
    unknown = {tp: offset for tp, offset in committed.items() if offset and tp not in known}
    if unknown and adopts_broker_offsets(store):
        _adopt_offsets(store, group, unknown, now)
        known |= unknown
    offsets = {tp: min(offset or 0, known.get(tp, 0)) for tp, offset in committed.items()}
    rewound = {tp: offset for tp, offset in offsets.items() if offset < (committed[tp] or 0)}
    return StartOffsets(offsets, rewound, {tp: known.get(tp, 0) for tp in committed})


class DeletedUnread(Struct, frozen=True):
    """Events of a partition that the broker deleted before the group had read them.

    ``count``: of all times; ``first`` and ``until``: the offsets of the latest.
    """

    count: int
    first: int
    until: int
    at: datetime


def record_deleted(
    store: Store, group: str, place: TopicPartition, first: int, until: int, now: datetime
) -> None:
    """Record that the events from ``first`` to before ``until`` were deleted unread.

    A worker that failed before it stored its position beyond them records them again, once.
    """
    name = _deleted_row(group, place)
    table = tables.installation
    with store.transaction() as connection:
        query = sa.select(table.c.value).where(table.c.name == name)
        known = connection.scalar(query)
        count = until - first
        if known is not None:
            before = msgspec.json.decode(known, type=DeletedUnread)
            again = before.first == first
            count = before.count + (max(0, until - before.until) if again else count)
        value = msgspec.json.encode(DeletedUnread(count, first, until, now)).decode()
        store.upsert(connection, table, [{"name": name, "value": value}], keep=False)


def deleted_unread(
    store: Store, group: str, places: Sequence[TopicPartition]
) -> dict[TopicPartition, DeletedUnread]:
    """What is recorded of events that were deleted unread."""
    names = {_deleted_row(group, place): place for place in places}
    table = tables.installation
    query = sa.select(table.c.name, table.c.value).where(table.c.name.in_(names))
    with store.reading() as connection:
        return {
            names[row.name]: msgspec.json.decode(row.value, type=DeletedUnread)
            for row in connection.execute(query)
        }


def _deleted_row(group: str, place: TopicPartition) -> str:
    """The row's name in ``installation``; names of groups and topics can be longer than it."""
    topic, partition = place
    digest = hashlib.sha256(f"{group}\0{topic}".encode()).hexdigest()[:24]
    return f"deleted-unread-{digest}-{partition}"


def _adopt_offsets(
    store: Store, group: str, offsets: Mapping[TopicPartition, int], now: datetime
) -> None:
    values = [
        {
            "consumer_group": group,
            "topic": topic,
            "partition": partition,
            "next_offset": offset,
            "at": now,
        }
        for (topic, partition), offset in offsets.items()
    ]
    with store.transaction() as connection:
        store.upsert(connection, tables.log_positions, values, keep=True)
