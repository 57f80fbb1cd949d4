"""Up to where the log is in the database: the group's offsets, in the transaction of each batch.

A batch is committed here before its offsets are committed to the brokers, so these are never
behind the brokers', unless the database was restored from a backup. Then the log is read again
from here.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from msgspec import Struct

from stream_app.store import tables
from stream_app.store.repository import Store

TAKE_OVER: Final = "log_positions"
"""In ``installation`` where the database was filled before there were positions."""

Place = tuple[str, int]
"""Topic and partition."""


class Beginning(Struct, frozen=True):
    """``offsets``: where reading begins. ``back``: those that lie before what was committed."""

    offsets: dict[Place, int]
    back: dict[Place, int]


def stored(store: Store, group: str, topics: Sequence[str]) -> dict[Place, int]:
    """The next offset of each partition that something was stored of."""
    table = tables.log_positions
    query = sa.select(table.c.topic, table.c.partition, table.c.next_offset).where(
        table.c.consumer_group == group, table.c.topic.in_(topics)
    )
    with store.reading() as connection:
        return {(row.topic, row.partition): row.next_offset for row in connection.execute(query)}


def takes_over(store: Store) -> bool:
    """Whether partitions that nothing is known of are at the brokers' offsets."""
    table = tables.installation
    query = sa.select(table.c.value).where(table.c.name == TAKE_OVER)
    with store.reading() as connection:
        return connection.scalar(query) is not None


def beginning(
    store: Store, group: str, committed: Mapping[Place, int | None], now: datetime
) -> Beginning:
    """Where to begin, given what the group has committed to the brokers.

    A partition that the database knows nothing of begins at 0, unless the database is older than
    this table.
    """
    known = stored(store, group, list({topic for topic, _ in committed}))
    unknown = {place: at for place, at in committed.items() if at and place not in known}
    if unknown and takes_over(store):
        _take_over(store, group, unknown, now)
        known |= unknown
    offsets = {place: min(at or 0, known.get(place, 0)) for place, at in committed.items()}
    back = {place: at for place, at in offsets.items() if at < (committed[place] or 0)}
    return Beginning(offsets, back)


def _take_over(store: Store, group: str, places: Mapping[Place, int], now: datetime) -> None:
    values = [
        {
            "consumer_group": group,
            "topic": topic,
            "partition": partition,
            "next_offset": offset,
            "at": now,
        }
        for (topic, partition), offset in places.items()
    ]
    with store.transaction() as connection:
        store.upsert(connection, tables.log_positions, values, keep=True)
