"""Work that is repeated until it is stopped, with back-off after failures, and its health."""

import threading
import time
from abc import ABC, abstractmethod
from typing import Final

import structlog
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_when_event_set,
    wait_random_exponential,
)

from stream_app.errors import StoreUnavailable
from stream_app.notifications.notification import DeliveryFailed

log = structlog.get_logger(__name__)

HANGS_AFTER = 120.0
"""Seconds after which a delivery or database query counts as hanging."""
_FAILURES: Final = (DeliveryFailed, StoreUnavailable)


class Rounds(ABC):
    """Repeats ``round``; one thread runs it, others may stop it and ask for its health."""

    def __init__(self, name: str, every: float, max_wait: float) -> None:
        """``every``: seconds between two rounds; ``max_wait``: maximum seconds between retries."""
        self.name = name
        self._every = every
        self._max_wait = max_wait
        self._busy_since: float | None = None
        self._problem: str | None = "not checked yet"
        self._stopped = threading.Event()

    @abstractmethod
    def round(self) -> int:
        """Do everything that is due now; return the number of notifications sent.

        Raises:
            DeliveryFailed: the target is failing; the rest waits for the next round.
            StoreUnavailable: the database does not answer.
        """

    def stop(self) -> None:
        """Stop after the delivery in progress."""
        self._stopped.set()

    def not_alive(self) -> list[str]:
        """Reasons to restart the process; empty if there are none."""
        since = self._busy_since
        if since is None or time.monotonic() - since < HANGS_AFTER:
            return []
        return [f"one delivery has taken {time.monotonic() - since:.0f} s"]

    def not_ready(self) -> list[str]:
        """Problems that prevent deliveries; empty if there are none."""
        problem = self._problem
        return self.not_alive() + ([problem] if problem else [])

    def run(self) -> None:
        """Repeat until stopped; after a failure wait with back-off and jitter."""
        while not self._stopped.is_set():
            try:
                self._retrying()(self._round)
            except _FAILURES:  # stopped while waiting
                return
            self._stopped.wait(self._every)

    def mark_busy(self) -> None:
        """Restart the clock that detects a hanging delivery."""
        self._busy_since = time.monotonic()

    def _round(self) -> None:
        self.mark_busy()
        try:
            self.round()
        except _FAILURES as problem:
            self._problem = str(problem)
            raise
        else:
            self._problem = None
        finally:
            self._busy_since = None

    def _retrying(self) -> Retrying:
        return Retrying(
            retry=retry_if_exception_type(_FAILURES),
            wait=self._wait,
            stop=stop_when_event_set(self._stopped),
            sleep=sleep_using_event(self._stopped),
            before_sleep=self._log_retry,
            reraise=True,
        )

    def _wait(self, attempt: RetryCallState) -> float:
        """Seconds of back-off, or what the target asks for, up to the longest wait."""
        problem = attempt.outcome.exception() if attempt.outcome else None
        asked = problem.retry_after if isinstance(problem, DeliveryFailed) else 0.0
        back_off = wait_random_exponential(multiplier=self._every, max=self._max_wait)
        return max(back_off(attempt), min(asked, self._max_wait))

    def _log_retry(self, attempt: RetryCallState) -> None:
        problem = attempt.outcome.exception() if attempt.outcome else None
        log.warning(
            "alert.not_delivered",
            target=self.name,
            attempt=attempt.attempt_number,
            problem=str(problem),
        )
