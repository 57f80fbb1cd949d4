"""Up to where the database contains the log: noticed when an older one takes its place."""

from collections.abc import Callable, Iterable, Mapping

from stream_app.core.pipeline.pipeline import Received
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.ports import LogPosition, SessionStore
from stream_app.errors import DatabaseWentBack
from stream_app.store.stream.log_positions import StartOffsets, TopicPartition
from stream_app.worker.batches.retries import Retries


class Positions:
    """The positions that this worker has committed to the database, by partition."""

    def __init__(self, store: SessionStore, retries: Retries, group: str) -> None:
        self._store = store
        self._retries = retries
        self._group = group
        self._stored: dict[TopicPartition, int] = {}
        self._assigned: frozenset[TopicPartition] = frozenset()

    def after(self, batch: Iterable[Received]) -> list[LogPosition]:
        """The log positions after this batch: no event before them waits."""
        read_to: dict[TopicPartition, int] = {}
        for received in batch:
            source = received.source
            place = source.topic, source.partition
            if received.position:
                read_to[place] = max(read_to.get(place, 0), received.position)
        return self._before(read_to)

    def committed(self, positions: Iterable[LogPosition]) -> None:
        """Note that the database contains what precedes these positions."""
        self._stored.update({(at.topic, at.partition): at.next_offset for at in positions})

    def continue_from(self, read: Callable[[], StartOffsets]) -> StartOffsets:
        """Read where to start after a rebalance; may be called from any thread.

        Batches from before may still be in progress: the database must contain what precedes them.

        Raises:
            DatabaseWentBack: it does not; those batches will be refused.
        """
        before = dict(self._stored)
        found = self._retries.while_unavailable(read)
        missing = sum(max(0, before.get(at, 0) - offset) for at, offset in found.stored.items())
        if missing:
            raise DatabaseWentBack(missing)
        for at, offset in found.stored.items():
            self._stored[at] = max(offset, self._stored.get(at, 0))
        self._assigned = frozenset(found.stored)
        return found

    def check(self) -> None:
        """Check that the database still contains what was committed, also without new events.

        Raises:
            DatabaseWentBack: it does not.
        """
        known = [
            LogPosition(self._group, *at, offset, offset)
            for at, offset in self._stored.copy().items()
            if at in self._assigned
        ]
        self._retries.while_unavailable(lambda: self._store.check_positions(known))

    def skip_to(self, ends: Mapping[TopicPartition, int]) -> None:
        """Store that the log contains no event up to these offsets.

        Raises:
            DatabaseWentBack: the database lacks events before them.
        """
        positions = self._before(ends)
        self._retries.while_unavailable(lambda: self._store.commit(BatchResult(), (), positions))
        self._stored.update(ends)

    def _before(self, ends: Mapping[TopicPartition, int]) -> list[LogPosition]:
        return [
            LogPosition(self._group, *place, offset, self._stored.get(place) or None)
            for place, offset in ends.items()
        ]
