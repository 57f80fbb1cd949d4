"""Keeps the worker's lag and watermarks, and the broker's time."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from stream_app.core.pipeline.pipeline import Received
from stream_app.worker.batches.broker_clock import BrokerClock
from stream_app.worker.kafka.app import RapportApp, assigned_partitions, lag_of
from stream_app.worker.kafka.watermarks import Watermarks


class Progress:
    """Lag, watermarks and the broker's clock, for the partitions of the topic of turns.

    ``now``: what the timers measure by; the clock of this machine may be wrong.
    """

    def __init__(self, app: RapportApp, topic: str, now: Callable[[], datetime]) -> None:
        self.topic = topic
        self.now = now
        self.broker_clock = BrokerClock()
        self._app = app
        self._watermarks = Watermarks()

    def assigned(self) -> list[int]:
        """Partitions that are assigned to this worker."""
        return assigned_partitions(self._app, self.topic)

    def observe_lag(self) -> dict[int, int] | None:
        """Return the lag; at the end of a partition, records will tell the broker's time."""
        lag = lag_of(self._app, self.topic)
        self.broker_clock.at_end(partition for partition, left in (lag or {}).items() if not left)
        return lag

    def watermarks(self) -> dict[int, datetime]:
        """The time up to which each partition is processed; none for those that are unread."""
        return self._watermarks.current(lag_of(self._app, self.topic) or {}, self.now())

    def received(self, messages: Iterable[Any]) -> None:
        """Note that these records were received."""
        self.broker_clock.received(messages)

    def processed(self, batch: Iterable[Received]) -> None:
        """Note that this batch is committed."""
        self._watermarks.advance(batch, self.now())

    def revoked(self) -> None:
        """Forget everything, as partitions are reassigned."""
        self._watermarks.clear()
        self.broker_clock.forget()
