"""Whether a worker is alive, and whether it is ready.

    alive   its event loop turns, it is in the consumer group or joining it for a while only, and
            where there is lag it moves on
    ready   alive, in its group, model loaded, store reachable, lag known; it may have no partition,
            where there are more workers than partitions, and stands by

A worker that is not alive does not come back by itself: Faust logs a hung consumer and goes on.
"""

import threading
import time
from collections.abc import Callable

from msgspec import Struct


class HealthLimits(Struct, frozen=True):
    """Seconds that a healthy worker may take.

    ``progress`` must be longer than the worst batch with all its retries.
    """

    beat: float = 30.0
    join: float = 120.0
    progress: float = 300.0


class Health:
    """What is known of a worker; written by its event loop, read from any thread."""

    def __init__(self, limits: HealthLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        now = clock()
        self._beat = self._joining_since = self._moved = now
        self._joined = False
        self._partitions: list[int] = []
        self._lag: dict[int, int] | None = None
        self._store: str | None = "not asked yet"
        self._topic_exists = True

    def beat(self) -> None:
        """The event loop turns."""
        with self._lock:
            self._beat = self._clock()

    def joined(self, partitions: list[int]) -> None:
        """The consumer group gave this worker partitions, perhaps none."""
        with self._lock:
            self._joined, self._partitions = True, sorted(partitions)
            self._lag = None
            self._moved = self._clock()

    def left(self) -> None:
        """The partitions were taken back: a rebalance."""
        with self._lock:
            if self._joined:
                self._joining_since = self._clock()
            self._joined, self._partitions, self._lag = False, [], None

    def moved(self) -> None:
        """A batch is committed and acknowledged."""
        with self._lock:
            self._moved = self._clock()

    def lag(self, by_partition: dict[int, int] | None) -> None:
        """Events not yet committed, by partition; None while the brokers have not said."""
        with self._lock:
            self._lag = by_partition
            if by_partition is not None and not any(by_partition.values()):
                self._moved = self._clock()

    def topic(self, exists: bool) -> None:
        """Whether the brokers know the topic of the turns."""
        with self._lock:
            self._topic_exists = exists

    def store(self, problem: str | None) -> None:
        """What the store said to a ping; None when it answered."""
        with self._lock:
            self._store = problem

    def woke(self, missed: float) -> None:
        """The process stood still for so many seconds: they do not count."""
        with self._lock:
            self._beat += missed
            self._joining_since += missed
            self._moved += missed

    def not_alive(self) -> list[str]:
        """Why the worker should be started again; empty while it is alive."""
        limits = self._limits
        with self._lock:
            now = self._clock()
            reasons = []
            if now - self._beat > limits.beat:
                reasons.append(f"the event loop has not turned for {now - self._beat:.0f} s")
            if not self._joined and now - self._joining_since > limits.join:
                since = now - self._joining_since
                reasons.append(f"not in the consumer group for {since:.0f} s")
            behind = sum(self._lag.values()) if self._lag else 0
            if behind and now - self._moved > limits.progress:
                since = now - self._moved
                reasons.append(f"{behind} events behind and no batch for {since:.0f} s")
            return reasons

    def not_ready(self) -> list[str]:
        """What is missing; empty when the worker is ready."""
        reasons = self.not_alive()
        with self._lock:
            if not self._joined:
                reasons.append("joining the consumer group")
            elif not self._topic_exists and not self._partitions:
                reasons.append("the topic of the turns does not exist")
            elif self._lag is None:
                reasons.append("lag not known yet")
            if self._store is not None:
                reasons.append(f"store: {self._store}")
        return reasons


class Watchdog(threading.Thread):
    """Looks at the health every second; calls ``give_up`` once with the reasons.

    When the process itself stood still (SIGSTOP, a suspended machine), its clocks are put forward
    by that time: the worker gets the chance to find out that others have taken over.
    """

    def __init__(
        self,
        health: Health,
        give_up: Callable[[list[str]], None],
        every: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(name="watchdog", daemon=True)
        self._health = health
        self._give_up = give_up
        self._every = every
        self._clock = clock
        self._stopped = threading.Event()

    def run(self) -> None:
        """Until stopped, or until the worker is not alive."""
        before = self._clock()
        while not self._stopped.wait(self._every):
            now = self._clock()
            if now - before > 5 * self._every:
                self._health.woke(now - before - self._every)
            before = now
            if reasons := self._health.not_alive():
                self._give_up(reasons)
                return

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()
