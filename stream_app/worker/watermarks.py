"""What time it is in each partition, so that no session's clock moves another's.

A partition that is read to its end is at the present. One that is behind is where its records were
appended. Where brokers do not write that time, producers' clocks stand for it: the median of a
batch, and never more than the present, so that a few wrong clocks change nothing.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from statistics import median_low

from stream_app.core.pipeline import Received


class Watermarks:
    """By partition, up to which time its log has been worked on."""

    def __init__(self) -> None:
        self._read_to: dict[int, datetime] = {}

    def advance(self, batch: Iterable[Received], now: datetime) -> None:
        """A batch is committed."""
        found: dict[int, list[datetime]] = {}
        for received in batch:
            at = received.appended_at or received.produced_at
            if at is not None:
                found.setdefault(received.source.partition, []).append(min(at, now))
        for partition, times in found.items():
            self._read_to[partition] = median_low(times)

    def current(self, lag: Mapping[int, int], now: datetime) -> dict[int, datetime]:
        """The time of each partition that has one: with a lag, and nothing read yet, none has."""
        return {
            partition: now if events == 0 else self._read_to[partition]
            for partition, events in sorted(lag.items())
            if events == 0 or partition in self._read_to
        }

    def clear(self) -> None:
        """Partitions have moved."""
        self._read_to.clear()
