"""Batches of queued events: how large, and how long they wait."""

import threading

from msgspec import Struct

from stream_app.client.answers import EventResult
from stream_app.client.errors import EventsNotSent
from stream_app.client.requests import MAX_BYTES, MAX_EVENTS


class Batching(Struct, frozen=True):
    """A batch is sent when it has ``events`` or ``bytes``, or ``linger`` seconds after its first.

    ``waiting``: how many events may wait; then queueing one waits for the service.
    """

    events: int = 100
    bytes: int = 1024 * 1024
    linger: float = 0.2
    waiting: int = 10_000

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            ValueError: one of them is out of range.
        """
        if not 1 <= self.events <= MAX_EVENTS or not 1 <= self.bytes <= MAX_BYTES:
            raise ValueError(f"a batch has 1 to {MAX_EVENTS} events and 1 to {MAX_BYTES} bytes")
        if self.linger < 0 or self.waiting < 1:
            raise ValueError("linger must not be negative, and waiting at least 1")

    def is_full(self, events: int, size: int) -> bool:
        """Whether a batch is due before ``linger`` has passed."""
        return events >= self.events or size >= self.bytes


class Losses:
    """Counts queued events that were refused or got no answer, until they are reported."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._refused: list[EventResult] = []
        self._lost = 0
        self._problem: Exception | None = None

    def refused(self, result: EventResult) -> None:
        """Note a refused event."""
        with self._lock:
            self._refused.append(result)

    def lost(self, count: int, problem: Exception) -> None:
        """Note events without an answer."""
        with self._lock:
            self._lost += count
            self._problem = self._problem or problem

    def report(self) -> None:
        """Raise what was noted since the last report.

        Raises:
            EventsNotSent: something was.
        """
        with self._lock:
            refused, lost, problem = self._refused, self._lost, self._problem
            self._refused, self._lost, self._problem = [], 0, None
        if refused or lost:
            raise EventsNotSent(refused, lost, problem)
