"""Liveness and readiness of a worker.

    alive   its event loop runs, it is in the consumer group or joining it within a time limit, and
            it makes progress if it has lag
    ready   alive, in its group, model loaded, store reachable, lag known; a standby worker without
            a partition is ready

A worker that is not alive does not recover: Faust only logs that its consumer hangs.
"""

import threading
import time
from collections.abc import Callable

from msgspec import Struct


class HealthLimits(Struct, frozen=True):
    """Time limits of a healthy worker in seconds: heartbeat, joining the group, one batch.

    ``progress`` must exceed the longest batch with all its retries.
    """

    beat: float = 30.0
    join: float = 120.0
    progress: float = 300.0


class Health:
    """The worker's status; updated by its event loop, read from any thread."""

    def __init__(self, limits: HealthLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        now = clock()
        self._beat = self._joining_since = self._progressed_at = now
        self._joined = False
        self._partitions: list[int] = []
        self._lag: dict[int, int] | None = None
        self._store: str | None = "not checked yet"
        self._topic_exists = True

    def beat(self) -> None:
        """Record that the event loop runs."""
        with self._lock:
            self._beat = self._clock()

    def joined(self, partitions: list[int]) -> None:
        """Record the partitions assigned by the consumer group, possibly none."""
        with self._lock:
            self._joined, self._partitions = True, sorted(partitions)
            self._lag = None
            self._progressed_at = self._clock()

    def left(self) -> None:
        """Record that a rebalance has revoked the partitions."""
        with self._lock:
            if self._joined:
                self._joining_since = self._clock()
            self._joined, self._partitions, self._lag = False, [], None

    def progressed(self) -> None:
        """Record that a batch is committed and acknowledged."""
        with self._lock:
            self._progressed_at = self._clock()

    def report_lag(self, by_partition: dict[int, int] | None) -> None:
        """Record the uncommitted events by partition; None while unknown."""
        with self._lock:
            self._lag = by_partition
            if by_partition is not None and not any(by_partition.values()):
                self._progressed_at = self._clock()

    def report_topic(self, exists: bool) -> None:
        """Record whether the topic of the turns exists."""
        with self._lock:
            self._topic_exists = exists

    def report_store(self, problem: str | None) -> None:
        """Record why a ping of the store failed; None if it succeeded."""
        with self._lock:
            self._store = problem

    def exclude_suspension(self, missed: float) -> None:
        """Exclude the seconds during which the whole process was suspended."""
        with self._lock:
            self._beat += missed
            self._joining_since += missed
            self._progressed_at += missed

    def not_alive(self) -> list[str]:
        """Reasons to restart the worker; empty while it is alive."""
        limits = self._limits
        with self._lock:
            now = self._clock()
            reasons = []
            if now - self._beat > limits.beat:
                reasons.append(f"the event loop has been blocked for {now - self._beat:.0f} s")
            if not self._joined and now - self._joining_since > limits.join:
                since = now - self._joining_since
                reasons.append(f"not in the consumer group for {since:.0f} s")
            behind = sum(self._lag.values()) if self._lag else 0
            if behind and now - self._progressed_at > limits.progress:
                since = now - self._progressed_at
                reasons.append(f"{behind} events behind and no batch for {since:.0f} s")
            return reasons

    def not_ready(self) -> list[str]:
        """Reasons why the worker is not ready; empty if it is."""
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
    """Checks liveness every second; calls ``give_up`` once with the reasons.

    Time during which the whole process was suspended (SIGSTOP, a suspended machine) does not count,
    so that the worker can notice a rebalance and rejoin.
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
        """Run until stopped, or until the worker is not alive."""
        before = self._clock()
        while not self._stopped.wait(self._every):
            now = self._clock()
            if now - before > 5 * self._every:
                self._health.exclude_suspension(now - before - self._every)
            before = now
            if reasons := self._health.not_alive():
                self._give_up(reasons)
                return

    def stop(self) -> None:
        """Stop checking."""
        self._stopped.set()
