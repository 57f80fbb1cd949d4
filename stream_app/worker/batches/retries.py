"""Repeats calls of the store while the database is unavailable."""

import threading
from collections.abc import Callable
from typing import TypeVar

import structlog
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_attempt,
    stop_after_delay,
    stop_any,
    stop_when_event_set,
    wait_random_exponential,
)

from stream_app.errors import StaleState, StoreError, StoreUnavailable
from stream_app.worker.batches.metrics import WorkerMetrics

log = structlog.get_logger(__name__)
T = TypeVar("T")


class Retries:
    """Retries until the retry time is over or the worker stops; callable from any thread."""

    def __init__(self, retry_for: float, metrics: WorkerMetrics) -> None:
        self._retry_for = retry_for
        self._metrics = metrics
        self._ending = threading.Event()

    def stop(self) -> None:
        """Stop retrying because the worker stops; may be called from any thread."""
        self._ending.set()

    def while_unavailable(self, call: Callable[[], T]) -> T:
        """Retry while the database is unavailable, with back-off and jitter."""
        retrying = Retrying(
            retry=retry_if_exception_type(StoreUnavailable),
            wait=wait_random_exponential(multiplier=0.1, max=5.0),
            stop=stop_any(stop_after_delay(self._retry_for), stop_when_event_set(self._ending)),
            before_sleep=self._log_retry,
            sleep=sleep_using_event(self._ending),
            reraise=True,
        )
        try:
            return retrying(call)
        except StaleState:
            raise
        except StoreError:
            self._metrics.store_errors.inc()
            raise

    def while_stale(
        self, call: Callable[[], T], clear: Callable[[], None], attempts: int | None
    ) -> T:
        """Retry while another worker advances the sessions; ``clear`` forgets what was loaded.

        ``attempts``: at most so many; None if the retry time alone limits them.
        """
        enough = stop_after_attempt(attempts) if attempts else stop_after_delay(self._retry_for)

        def before_sleep(attempt: RetryCallState) -> None:
            stale = attempt.outcome.exception() if attempt.outcome else None
            log.warning("state.stale", detail=str(stale))
            self._metrics.stale_states.inc()
            clear()

        retrying = Retrying(
            retry=retry_if_exception_type(StaleState),
            wait=wait_random_exponential(multiplier=0.05, max=2.0),
            stop=stop_any(enough, stop_when_event_set(self._ending)),
            before_sleep=before_sleep,
            sleep=sleep_using_event(self._ending),
            reraise=True,
        )
        return retrying(call)

    def _log_retry(self, attempt: RetryCallState) -> None:
        self._metrics.retries.inc()
        log.warning(
            "store.unavailable",
            attempt=attempt.attempt_number,
            waited_s=attempt.seconds_since_start,
        )
