"""The time up to which each partition is processed, independent of the events' own times.

The watermark of a partition that is read to its end is the present. Of one that is behind, it is
the append time of the latest batch. If brokers write no append time, the producers' time stamps are
used: the median of a batch and at most the present, so that a few wrong clocks have no effect.

Where events of a batch have overtaken others that still wait, the watermark stays with those before
the oldest that waits: a silent session may be one whose turns wait.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from statistics import median_low

from stream_app.core.pipeline.pipeline import Received


class Watermarks:
    """Watermarks by partition."""

    def __init__(self) -> None:
        self._processed_until: dict[int, datetime] = {}

    def advance(self, batch: Iterable[Received], now: datetime) -> None:
        """Advance the watermarks of the batch's partitions after its commit."""
        by_partition: dict[int, list[Received]] = {}
        for received in batch:
            by_partition.setdefault(received.source.partition, []).append(received)
        for partition, found in by_partition.items():
            position = max(received.position for received in found)
            times = _times(found, now)
            before = _times([each for each in found if each.source.offset < position], now)
            if before:
                self._processed_until[partition] = min(median_low(before), median_low(times))

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


def _times(batch: Iterable[Received], now: datetime) -> list[datetime]:
    times = (received.appended_at or received.produced_at for received in batch)
    return [min(at, now) for at in times if at is not None]
