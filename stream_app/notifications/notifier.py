"""Delivers what is due, waits when the target does not take it, begins again."""

import threading
import time

import structlog
from prometheus_client import CollectorRegistry, Counter
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_when_event_set,
    wait_random_exponential,
)

from stream_app.errors import StoreUnavailable
from stream_app.notifications.webhook import NotTaken, Refused, Webhook
from stream_app.store.deliveries import Deliveries, DueAlert

log = structlog.get_logger(__name__)

MOST_DOUBLINGS = 30
HANGS_AFTER = 120.0
"""Seconds that one delivery, or one look at the database, may take."""


class Notifier:
    """One target's deliveries, until stopped.

    At least once: an alert is due until the target has acknowledged it, whatever ends in between.
    It is not sent again after that; the one exception is a notifier that dies between the
    acknowledgement and its note of it, so receivers that must not act twice keep `webhook-id`.
    """

    def __init__(
        self, deliveries: Deliveries, webhook: Webhook, every: float, longest_wait: float
    ) -> None:
        """In seconds: the pause between two looks, and the longest one after failures."""
        self._deliveries = deliveries
        self._webhook = webhook
        self._every = every
        self._longest_wait = longest_wait
        self._not_before: dict[str, float] = {}
        self._busy_since: float | None = None
        self._problem: str | None = "not asked yet"
        self.registry = CollectorRegistry()
        self._attempts = Counter(
            "rapport_deliveries",
            "Attempts to deliver an alert, by how they ended",
            ["result"],
            registry=self.registry,
        )
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End after the delivery in hand."""
        self._stopped.set()

    def not_alive(self) -> list[str]:
        """Why the notifier should be started again; empty while it is alive."""
        since = self._busy_since
        if since is None or time.monotonic() - since < HANGS_AFTER:
            return []
        return [f"one delivery has taken {time.monotonic() - since:.0f} s"]

    def not_ready(self) -> list[str]:
        """What keeps alerts from being delivered; empty when nothing does."""
        problem = self._problem
        return self.not_alive() + ([problem] if problem else [])

    def run(self) -> None:
        """Deliver until stopped; a failure is waited out with back-off and jitter."""
        while not self._stopped.is_set():
            try:
                self._retrying()(self._round)
            except (NotTaken, StoreUnavailable):  # stopped while it waited
                return
            self._stopped.wait(self._every)

    def round(self) -> int:
        """Deliver all that is due now, and return how much that was.

        Raises:
            NotTaken: the target is not well; the rest waits for the next round, which begins with
                what was tried least often.
            StoreUnavailable: the database is away.
        """
        sent = 0
        with self._deliveries.alone() as alone:
            if not alone:
                return 0
            self._deliveries.begin()
            while due := [alert for alert in self._deliveries.due() if self._is_time(alert)]:
                for alert in due:
                    if self._stopped.is_set():
                        return sent
                    sent += self._deliver(alert)
        return sent

    def _round(self) -> None:
        self._busy_since = time.monotonic()
        try:
            self.round()
        except (NotTaken, StoreUnavailable) as problem:
            self._problem = str(problem)
            raise
        else:
            self._problem = None
        finally:
            self._busy_since = None

    def _deliver(self, alert: DueAlert) -> bool:
        self._busy_since = time.monotonic()
        try:
            self._webhook.send(alert)
        except Refused as problem:  # this message waits, the others do not wait for it
            self._deliveries.failed(alert, str(problem))
            self._attempts.labels("refused").inc()
            doubled = self._every * 2 ** min(alert.attempts, MOST_DOUBLINGS)
            wait = min(self._longest_wait, doubled)
            self._not_before[alert.alert_id] = time.monotonic() + wait
            log.warning("alert.refused", alert=alert.alert_id, problem=str(problem))
            return False
        except NotTaken as problem:
            self._deliveries.failed(alert, str(problem))
            self._attempts.labels("failed").inc()
            raise
        self._deliveries.acknowledged(alert)
        self._attempts.labels("acknowledged").inc()
        self._not_before.pop(alert.alert_id, None)
        log.info("alert.delivered", alert=alert.alert_id, attempts=alert.attempts + 1)
        return True

    def _is_time(self, alert: DueAlert) -> bool:
        return time.monotonic() >= self._not_before.get(alert.alert_id, 0.0)

    def _retrying(self) -> Retrying:
        return Retrying(
            retry=retry_if_exception_type((NotTaken, StoreUnavailable)),
            wait=wait_random_exponential(multiplier=self._every, max=self._longest_wait),
            stop=stop_when_event_set(self._stopped),
            sleep=sleep_using_event(self._stopped),
            before_sleep=_say,
            reraise=True,
        )


def _say(attempt: RetryCallState) -> None:
    problem = attempt.outcome.exception() if attempt.outcome else None
    log.warning("alert.not_delivered", attempt=attempt.attempt_number, problem=str(problem))
