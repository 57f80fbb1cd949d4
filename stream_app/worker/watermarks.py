"""The time up to which each partition is processed, independent of the events' own times.

The watermark of a partition that is read to its end is the present. Of one that is behind, it is
the append time of the latest batch. If brokers write no append time, the producers' time stamps are
used: the median of a batch and at most the present, so that a few wrong clocks have no effect.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from statistics import median_low

from stream_app.core.pipeline import Received


class Watermarks:
    """Watermarks by partition."""

    def __init__(self) -> None:
        self._processed_until: dict[int, datetime] = {}

    def advance(self, batch: Iterable[Received], now: datetime) -> None:
        """Advance the watermarks of the batch's partitions after its commit."""
        found: dict[int, list[datetime]] = {}
        for received in batch:
            at = received.appended_at or received.produced_at
            if at is not None:
                found.setdefault(received.source.partition, []).append(min(at, now))
        for partition, times in found.items():
            self._processed_until[partition] = median_low(times)

    def current(self, lag: Mapping[int, int], now: datetime) -> dict[int, datetime]:
        """Watermarks by partition, given the lag; unread partitions with a lag have none."""
        return {
            partition: now if events == 0 else self._processed_until[partition]
            for partition, events in sorted(lag.items())
            if events == 0 or partition in self._processed_until
        }

    def clear(self) -> None:
        """Forget all watermarks, as partitions are reassigned."""
        self._processed_until.clear()
