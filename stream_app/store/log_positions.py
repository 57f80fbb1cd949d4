"""The consumer group's offsets, stored in the transaction of each batch.

A batch is committed to the database before it is acknowledged to the brokers. So the stored offsets
are never behind the brokers', unless the database was restored from a backup; the log is then
re-read from the stored offsets. ``stored_positions`` detects it while a worker runs.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from msgspec import Struct

from stream_app.store import tables
from stream_app.store.repository import Store

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
