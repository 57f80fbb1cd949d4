"""Tells one target what is due: by itself, in a digest, or not at all; waits if it is not taken."""

import threading
import time
from collections import Counter as Counts
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog
from prometheus_client import Counter
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_when_event_set,
    wait_random_exponential,
)

from stream_app.contracts.scores import AlertState
from stream_app.errors import RowRefused, StoreError, StoreUnavailable
from stream_app.notifications.notification import (
    Channel,
    Notification,
    NotTaken,
    Refused,
    Unanswered,
    digest,
    digest_id,
    single,
)
from stream_app.notifications.pace import HOUR
from stream_app.notifications.targets import Target
from stream_app.store.deliveries import Deliveries, DeliveryState, DueAlert, Waiting
from stream_app.store.interventions import Intervention

log = structlog.get_logger(__name__)

MOST_DOUBLINGS = 30
HANGS_AFTER = 120.0
"""Seconds that one delivery, or one look at the database, may take."""
_DIGEST: Final = "digest"
_RESULTS: Final = {NotTaken: "failed", Refused: "refused", Unanswered: "unanswered"}
_NEVER_TOLD: Final = {
    DeliveryState.FILTERED,
    DeliveryState.MUTED,
    DeliveryState.ACKNOWLEDGED,
    DeliveryState.BEFORE,
}


class Notifier:
    """One target's deliveries, until stopped.

    At least once: an alert is due until the target has acknowledged it, whatever ends in between.
    It is not sent again after that; the one exception is a notifier that dies between the
    acknowledgement and its note of it, so receivers that must not act twice keep `webhook-id`.
    """

    def __init__(
        self,
        target: Target,
        deliveries: Deliveries,
        channel: Channel,
        counter: Counter,
        now: Callable[[], datetime],
        every: float,
        longest_wait: float,
    ) -> None:
        """In seconds: the pause between two looks, and the longest one after failures.

        ``counter`` has the labels `target` and `result`.
        """
        self.target = target
        self._pace = target.pace
        self._deliveries = deliveries
        self._channel = channel
        self._counter = counter
        self._now = now
        self._every = every
        self._longest_wait = longest_wait
        self._not_before: dict[str, datetime] = {}
        self._failed: Counts[str] = Counts()
        self._busy_since: float | None = None
        self._problem: str | None = "not asked yet"
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
        """Do all that is due now, and return how many notifications were sent.

        What has been held comes first, then what is new.

        Raises:
            NotTaken: the target is not well; the rest waits for the next round, which begins with
                what was tried least often.
            StoreUnavailable: the database is away.
        """
        with self._deliveries.alone() as alone:
            if not alone:
                return 0
            self._deliveries.begin(self._now())
            sent = self._tell_held()
            while due := [a for a in self._deliveries.due() if self._is_time(a.alert_id)]:
                self._busy_since = time.monotonic()
                stopped = self._stopped_by_people(due)
                for alert in due:
                    if self._stopped.is_set():
                        return sent
                    tell = partial(self._decide, alert, stopped.get(alert.episode_id))
                    sent += self._alone(alert.alert_id, [alert], tell)
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

    def _alone(self, key: str, alerts: Sequence[DueAlert], tell: Callable[[], bool]) -> bool:
        """Do one delivery; one that fails in a way of its own waits, the others do not."""
        try:
            return tell()
        except (NotTaken, StoreUnavailable):
            raise
        except Exception as problem:
            if isinstance(problem, StoreError) and not isinstance(problem, RowRefused):
                raise
            name = type(problem).__name__
            log.error("alert.failed", target=self.target.name, alert=key, reason=name)
            self._attempted("failed")
            self._failed[key] += 1
            self._wait(key, self._failed[key])
            self._deliveries.kept(alerts, f"telling it failed: {name}")
            return False

    def _decide(self, alert: DueAlert, intervention: Intervention | None) -> bool:
        """Tell it, hold it or settle it; whether it was told."""
        now = self._now()
        fate, reason = self._fate(alert, intervention, now)
        match fate:
            case DeliveryState.DELIVERED:
                counted = not self._pace.passes(alert.severity)
                return self._send(single(alert), [alert], fate, counted=counted)
            case DeliveryState.DUE:
                self._wait(alert.alert_id, alert.attempts)
                return False
            case DeliveryState.HELD:
                self._deliveries.hold(alert, now)
            case _:
                self._deliveries.settle([alert], fate, reason, now)
        self._count(fate)
        return False

    def _fate(
        self, alert: DueAlert, intervention: Intervention | None, now: datetime
    ) -> tuple[DeliveryState, str]:
        """What is to become of it, and why; DUE: it may have arrived and has to wait."""
        claimed = alert.notification_id is not None
        if not claimed and (fate := self._not_by_itself(alert, intervention)) is not None:
            return fate
        if (
            self._pace.passes(alert.severity)
            or _has_slot(alert.slot_at, now)
            or self._pace.may_tell(self._told(now), now)
        ):
            return DeliveryState.DELIVERED, ""
        return DeliveryState.DUE if claimed else DeliveryState.HELD, ""

    def _not_by_itself(
        self, alert: DueAlert, intervention: Intervention | None
    ) -> tuple[DeliveryState, str] | None:
        """What becomes of an alert that is not told by itself however much room there is."""
        if alert.firing is not None:  # a resolved alert goes the way of its firing
            if alert.firing in _NEVER_TOLD:
                return alert.firing, "its firing was not told"
            together = alert.firing in {DeliveryState.HELD, DeliveryState.DIGESTED}
            return (DeliveryState.HELD, "") if together else None
        if alert.state is AlertState.FIRING and intervention is not None:
            return _settled(intervention)
        return None if self.target.wants(alert) else (DeliveryState.FILTERED, "")

    def _tell_held(self) -> int:
        """Send the digests that are due; returns how many were taken."""
        return sum(
            self._alone(key, [], partial(self._tell_waiting, waiting))
            for waiting in self._deliveries.waiting()
            if self._is_time(key := waiting.notification_id or _DIGEST)
        )

    def _tell_waiting(self, waiting: Waiting) -> bool:
        now, identity = self._now(), waiting.notification_id
        told = self._told(now)
        if not _has_slot(waiting.slot_at, now) and not self._pace.may_digest(
            told, waiting.oldest, now, urgent=True
        ):
            return False
        if identity is not None:
            return self._send_digest(identity, self._deliveries.held(identity))
        held = self._left_by_people(self._deliveries.held(None))
        if not held:
            return False
        urgent = any(alert.firing is not DeliveryState.DIGESTED for alert in held)
        if not self._pace.may_digest(told, waiting.oldest, now, urgent=urgent):
            return False
        return self._send_digest(digest_id(self.target.name, held), held)

    def _send_digest(self, notification_id: str, held: list[DueAlert]) -> bool:
        message = digest(notification_id, held)
        return self._send(message, held, DeliveryState.DIGESTED, counted=True)

    def _left_by_people(self, held: list[DueAlert]) -> list[DueAlert]:
        """Without the firing ones that have been muted or acknowledged while they waited."""
        stopped = self._stopped_by_people(held)
        untold = {
            alert.episode_id
            for alert in held
            if alert.state is AlertState.FIRING and alert.episode_id in stopped
        }
        for episode in untold:
            gone = [alert for alert in held if alert.episode_id == episode]
            fate, reason = _settled(stopped[episode])
            self._deliveries.settle(gone, fate, reason, self._now())
            self._count(fate, len(gone))
        return [alert for alert in held if alert.episode_id not in untold]

    def _send(
        self,
        notification: Notification,
        alerts: Sequence[DueAlert],
        told: DeliveryState,
        *,
        counted: bool,
    ) -> bool:
        identity = notification.notification_id
        again = alerts[0].notification_id is not None
        key = identity if again or not notification.is_digest else _DIGEST
        attempts = max(alert.attempts for alert in alerts)
        self._busy_since = time.monotonic()
        self._deliveries.claim(alerts, identity, self._now(), counted=counted)
        try:
            self._channel.send(notification)
        except NotTaken as problem:
            if again or isinstance(problem, Unanswered):
                self._deliveries.kept(alerts, str(problem))
            else:
                self._deliveries.released(alerts, str(problem))
            self._attempted(_RESULTS[type(problem)])
            if not isinstance(problem, Refused):
                raise
            self._wait(key, attempts)  # this one waits, the others do not wait for it
            log.warning("alert.refused", **self._about(notification), problem=str(problem))
            return False
        self._deliveries.delivered(alerts, told)
        self._count(told, len(alerts))
        self._not_before.pop(key, None)
        log.info("alert.delivered", **self._about(notification), attempts=attempts + 1)
        return True

    def _stopped_by_people(self, alerts: Sequence[DueAlert]) -> dict[str, Intervention]:
        return self._deliveries.stopped(
            [alert for alert in alerts if alert.state is AlertState.FIRING], self._now()
        )

    def _told(self, now: datetime) -> int:
        return self._deliveries.notifications_since(now - HOUR)

    def _wait(self, key: str, attempts: int) -> None:
        seconds = min(self._longest_wait, self._every * 2 ** min(attempts, MOST_DOUBLINGS))
        self._not_before[key] = self._now() + timedelta(seconds=seconds)

    def _is_time(self, key: str) -> bool:
        now = self._now()
        return now >= self._not_before.get(key, now)

    def _count(self, fate: DeliveryState, alerts: int = 1) -> None:
        self._counter.labels(self.target.name, fate.value).inc(alerts)

    def _attempted(self, result: str) -> None:
        self._counter.labels(self.target.name, result).inc()

    def _about(self, notification: Notification) -> dict[str, str]:
        kind = _DIGEST if notification.is_digest else "alert"
        return {"target": self.target.name, kind: notification.notification_id}

    def _retrying(self) -> Retrying:
        return Retrying(
            retry=retry_if_exception_type((NotTaken, StoreUnavailable)),
            wait=wait_random_exponential(multiplier=self._every, max=self._longest_wait),
            stop=stop_when_event_set(self._stopped),
            sleep=sleep_using_event(self._stopped),
            before_sleep=self._say,
            reraise=True,
        )

    def _say(self, attempt: RetryCallState) -> None:
        problem = attempt.outcome.exception() if attempt.outcome else None
        log.warning(
            "alert.not_delivered",
            target=self.target.name,
            attempt=attempt.attempt_number,
            problem=str(problem),
        )


def _has_slot(slot_at: datetime | None, now: datetime) -> bool:
    """Whether it was handed over within the hour: to try again is the same notification."""
    return slot_at is not None and slot_at > now - HOUR


def _settled(intervention: Intervention) -> tuple[DeliveryState, str]:
    state = DeliveryState.MUTED if intervention.muted else DeliveryState.ACKNOWLEDGED
    return state, intervention.reason
