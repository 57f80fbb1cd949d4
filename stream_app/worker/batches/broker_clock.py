"""What time it is by the broker's clock, as far as records tell.

A record has the time at which the broker appended it (``LogAppendTime``). It arrives later; by how
much at most is known for a record of a partition that had been read to its end shortly before.
"""

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from stream_app.worker.batches.record_decoder import LOG_APPEND_TIME, moment


class BrokerClock:
    """The range that contains the broker's present; this process only counts the time since."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at_end: dict[int, float] = {}
        self._appended: tuple[datetime, float] | None = None
        self._spread = 0.0

    def at_end(self, partitions: Iterable[int]) -> None:
        """These partitions have no record that was not delivered."""
        self._at_end |= dict.fromkeys(partitions, self._clock())

    def received(self, messages: Iterable[Any]) -> None:
        """Records arrived; those of partitions that were never read to their end tell nothing."""
        now = self._clock()
        for message in messages:
            appended = moment(message.timestamp)
            since = self._at_end.get(message.partition)
            if message.timestamp_type == LOG_APPEND_TIME and appended and since is not None:
                self._appended, self._spread = (appended, now), now - since

    def forget(self) -> None:
        """Forget which partitions were read to their end, as they are reassigned."""
        self._at_end.clear()

    def present(self) -> tuple[datetime, datetime] | None:
        """The earliest and the latest that it can be by the broker's clock; None if unknown."""
        if self._appended is None:
            return None
        appended, at = self._appended
        earliest = appended.astimezone(UTC) + timedelta(seconds=self._clock() - at)
        return earliest, earliest + timedelta(seconds=self._spread)
