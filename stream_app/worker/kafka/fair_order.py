"""Which waiting events come next: sessions take turns, so that a noisy one delays no other.

A batch takes one event of each waiting session, then a second one of each, until it is full. The
events of a session keep their order, and so does a batch as a whole: it is a selection of the log.

The first event that a batch takes from a partition is the oldest that waits there. So each batch
moves the partition's position, although the position never passes an event that waits
(``OffsetTracker.begin``); a database that lacks the batch is recognised by its position.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class _Place(NamedTuple, Generic[T]):
    """An event's place in the line; ``number``: how many came before it."""

    number: int
    partition: Hashable
    session: Hashable
    item: T


class FairLine(Generic[T]):
    """Events that wait, by partition and session."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[int, _Place[T]] = OrderedDict()
        self._by_partition: dict[Hashable, OrderedDict[int, _Place[T]]] = {}
        self._by_session: OrderedDict[tuple[Hashable, Hashable], deque[_Place[T]]] = OrderedDict()
        self._added = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def reach(self) -> int:
        """Number of events from the oldest one that waits to the newest one of all."""
        return self._added - next(iter(self._waiting), self._added)

    def add(self, partition: Hashable, session: Hashable, item: T) -> None:
        """Add an event behind those of its session, and a new session behind all others."""
        place = _Place(self._added, partition, session, item)
        self._added += 1
        self._waiting[place.number] = place
        self._by_partition.setdefault(partition, OrderedDict())[place.number] = place
        self._by_session.setdefault((partition, session), deque()).append(place)

    def take(self, most: int) -> list[T]:
        """Remove and return at most this many events, in the order in which they were added.

        Sessions that get nothing come first the next time.
        """
        taken: list[_Place[T]] = []
        begun: set[Hashable] = set()
        while self._by_session and len(taken) < most:
            partition, session = next(iter(self._by_session))
            if partition not in begun:
                begun.add(partition)
                session = next(iter(self._by_partition[partition].values())).session
            taken.append(self._next_of(partition, session))
        taken.sort()
        return [place.item for place in taken]

    def clear(self) -> list[T]:
        """Remove and return all events."""
        return self.take(len(self))

    def _next_of(self, partition: Hashable, session: Hashable) -> _Place[T]:
        """Remove the session's oldest event; the session goes to the end of the line."""
        places = self._by_session.pop((partition, session))
        place = places.popleft()
        del self._waiting[place.number], self._by_partition[partition][place.number]
        if places:
            self._by_session[partition, session] = places
        return place
