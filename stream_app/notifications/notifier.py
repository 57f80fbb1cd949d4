"""Delivers due alerts to one target: separately, in a digest, or not at all; retries failures."""

from collections import Counter as Counts
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import structlog
from prometheus_client import Counter

from stream_app.contracts.scores import AlertState
from stream_app.errors import RowRefused, StoreError, StoreUnavailable
from stream_app.notifications.delays import Delays
from stream_app.notifications.notification import (
    Channel,
    DeliveryFailed,
    DeliveryRejected,
    DeliveryUnconfirmed,
    Notification,
    digest,
    digest_id,
    single,
)
from stream_app.notifications.rate_limit import HOUR
from stream_app.notifications.rounds import Rounds
from stream_app.notifications.targets import Target
from stream_app.store.alerts.deliveries import Deliveries, DeliveryState, DueAlert, PendingDigest
from stream_app.store.alerts.suppressions import Suppression

log = structlog.get_logger(__name__)

_DIGEST: Final = "digest"
_RESULTS: Final = {
    DeliveryFailed: "failed",
    DeliveryRejected: "refused",
    DeliveryUnconfirmed: "unanswered",
}
_NOT_SENT: Final = {
    DeliveryState.FILTERED,
    DeliveryState.MUTED,
    DeliveryState.ACKNOWLEDGED,
    DeliveryState.BEFORE,
}


class Notifier(Rounds):
    """Delivers alerts to one target until stopped.

    Delivery is at least once: an alert is due until the target has confirmed it. A confirmed alert
    is resent only if the notifier died before recording the confirmation, so receivers that must
    not act twice can deduplicate by `webhook-id`.
    """

    def __init__(
        self,
        target: Target,
        deliveries: Deliveries,
        channel: Channel,
        counter: Counter,
        now: Callable[[], datetime],
        every: float,
        max_wait: float,
        running: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Create a stopped notifier.

        ``every``: seconds between two rounds; ``max_wait``: maximum seconds between retries.
        ``running``: tells the seconds since the process was started.
        ``counter`` has the labels `target` and `result`.
        """
        super().__init__(target.name, every, max_wait)
        self.target = target
        self._rate_limit = target.rate_limit
        self._deliveries = deliveries
        self._channel = channel
        self._counter = counter
        for result in (*(state.value for state in DeliveryState), *_RESULTS.values()):
            counter.labels(target.name, result)  # starts at 0: alert rules see the first
        self._now = now
        self._running = running
        self._delays: Delays[str] = Delays(every, max_wait, now)
        self._failed: Counts[str] = Counts()

    def round(self) -> int:
        """Deliver everything due now, digests first; return the number of notifications sent.

        Raises:
            DeliveryFailed: the target is failing; the rest waits for the next round, which starts
                with the fewest attempts.
            StoreUnavailable: the database does not answer.
        """
        with self._deliveries.lock() as locked:
            if not locked:
                return 0
            self._deliveries.register_target(self._now(), self._running())
            self._reopen_unmuted()
            sent = self._send_digests()
            while due := [a for a in self._deliveries.due() if self._delays.is_over(a.alert_id)]:
                self.mark_busy()
                suppressions = self._find_suppressions(due)
                for alert in due:
                    if self._stopped.is_set():
                        return sent
                    deliver = partial(self._process, alert, suppressions.get(alert.episode_id))
                    sent += self._isolate(alert.alert_id, [alert], deliver)
        return sent

    def _reopen_unmuted(self) -> None:
        """Decide again on alerts that fired during a mute and still fire after it."""
        muted = self._deliveries.muted()
        suppressions = self._find_suppressions(muted)
        self._deliveries.reopen(
            [
                alert
                for alert in muted
                if (found := suppressions.get(alert.episode_id)) is None or not found.muted
            ]
        )

    def _isolate(self, key: str, alerts: Sequence[DueAlert], deliver: Callable[[], bool]) -> bool:
        """Run one delivery; an error specific to it delays only this delivery."""
        try:
            return deliver()
        except (DeliveryFailed, StoreUnavailable):
            raise
        except Exception as problem:
            if isinstance(problem, StoreError) and not isinstance(problem, RowRefused):
                raise
            name = type(problem).__name__
            log.error("alert.failed", target=self.target.name, alert=key, reason=name)
            self._count_attempt("failed")
            self._failed[key] += 1
            self._delays.postpone(key, self._failed[key])
            self._deliveries.mark_unconfirmed(alerts, f"sending failed: {name}")
            return False

    def _process(self, alert: DueAlert, suppression: Suppression | None) -> bool:
        """Send, hold or suppress one alert; return whether it was sent."""
        now = self._now()
        state, reason = self._decide(alert, suppression, now)
        match state:
            case DeliveryState.DELIVERED:
                counted = not self._rate_limit.bypassed_by(alert.severity)
                return self._send(single(alert), [alert], state, counted=counted)
            case DeliveryState.DUE:
                self._delays.postpone(alert.alert_id, alert.attempts)
                return False
            case DeliveryState.HELD:
                self._deliveries.hold_for_digest(alert, now)
            case _:
                self._deliveries.suppress([alert], state, reason, now)
        self._count(state)
        return False

    def _decide(
        self, alert: DueAlert, suppression: Suppression | None, now: datetime
    ) -> tuple[DeliveryState, str]:
        """The next delivery state and its reason; DUE: unconfirmed, and over the limit."""
        claimed = alert.notification_id is not None
        if not claimed and (other := self._decide_without_limit(alert, suppression)) is not None:
            return other
        if (
            self._rate_limit.bypassed_by(alert.severity)
            or _already_counted(alert.slot_at, now)
            or self._rate_limit.allows_single(self._sent_in_last_hour(now), now)
        ):
            return DeliveryState.DELIVERED, ""
        return DeliveryState.DUE if claimed else DeliveryState.HELD, ""

    def _decide_without_limit(
        self, alert: DueAlert, suppression: Suppression | None
    ) -> tuple[DeliveryState, str] | None:
        """The state of an alert that does not depend on the rate limit; None if it does."""
        if alert.firing is not None:  # a resolved alert follows its firing
            if alert.firing in _NOT_SENT:
                return alert.firing, "its firing was not sent"
            in_digest = alert.firing in {DeliveryState.HELD, DeliveryState.DIGESTED}
            return (DeliveryState.HELD, "") if in_digest else None
        if alert.state is AlertState.FIRING and suppression is not None:
            return _decided_by(suppression)
        return None if self.target.wants(alert) else (DeliveryState.FILTERED, "")

    def _send_digests(self) -> int:
        """Send the digests that are due; return the number that was confirmed."""
        return sum(
            self._isolate(key, [], partial(self._send_if_due, pending))
            for pending in self._deliveries.pending_digests()
            if self._delays.is_over(key := pending.notification_id or _DIGEST)
        )

    def _send_if_due(self, pending: PendingDigest) -> bool:
        now, identity = self._now(), pending.notification_id
        sent = self._sent_in_last_hour(now)
        if not _already_counted(pending.slot_at, now) and not self._rate_limit.allows_digest(
            sent, pending.oldest, now, urgent=True
        ):
            return False
        if identity is not None:
            return self._send_digest(identity, self._deliveries.held_alerts(identity))
        held = self._without_suppressed(self._deliveries.held_alerts(None))
        if not held:
            return False
        urgent = any(alert.firing is not DeliveryState.DIGESTED for alert in held)
        if not self._rate_limit.allows_digest(sent, pending.oldest, now, urgent=urgent):
            return False
        return self._send_digest(digest_id(self.target.name, held), held)

    def _send_digest(self, notification_id: str, held: list[DueAlert]) -> bool:
        message = digest(notification_id, held)
        return self._send(message, held, DeliveryState.DIGESTED, counted=True)

    def _without_suppressed(self, held: list[DueAlert]) -> list[DueAlert]:
        """Suppress alerts that were muted or acknowledged while held; return the others."""
        suppressions = self._find_suppressions(held)
        suppressed = {
            alert.episode_id
            for alert in held
            if alert.state is AlertState.FIRING and alert.episode_id in suppressions
        }
        for episode in suppressed:
            alerts = [alert for alert in held if alert.episode_id == episode]
            state, reason = _decided_by(suppressions[episode])
            self._deliveries.suppress(alerts, state, reason, self._now())
            self._count(state, len(alerts))
        return [alert for alert in held if alert.episode_id not in suppressed]

    def _send(
        self,
        notification: Notification,
        alerts: Sequence[DueAlert],
        state: DeliveryState,
        *,
        counted: bool,
    ) -> bool:
        identity = notification.notification_id
        unconfirmed = alerts[0].notification_id is not None
        key = identity if unconfirmed or not notification.is_digest else _DIGEST
        attempts = max(alert.attempts for alert in alerts)
        self.mark_busy()
        self._deliveries.claim(alerts, identity, self._now(), counted=counted)
        try:
            self._channel.send(notification)
        except DeliveryFailed as problem:
            if unconfirmed or isinstance(problem, DeliveryUnconfirmed):
                self._deliveries.mark_unconfirmed(alerts, str(problem))
            else:
                self._deliveries.mark_failed(alerts, str(problem))
            self._count_attempt(_RESULTS[type(problem)])
            if not isinstance(problem, DeliveryRejected):
                raise
            self._delays.postpone(key, attempts, problem.retry_after)  # delays only this one
            log.warning("alert.refused", **self._about(notification), problem=str(problem))
            return False
        self._deliveries.mark_delivered(alerts, state)
        self._count(state, len(alerts))
        self._delays.forget(key)
        log.info("alert.delivered", **self._about(notification), attempts=attempts + 1)
        return True

    def _find_suppressions(self, alerts: Sequence[DueAlert]) -> dict[str, Suppression]:
        return self._deliveries.find_suppressions(
            [alert for alert in alerts if alert.state is AlertState.FIRING], self._now()
        )

    def _sent_in_last_hour(self, now: datetime) -> int:
        return self._deliveries.notifications_since(now - HOUR)

    def _count(self, state: DeliveryState, alerts: int = 1) -> None:
        self._counter.labels(self.target.name, state.value).inc(alerts)

    def _count_attempt(self, result: str) -> None:
        self._counter.labels(self.target.name, result).inc()

    def _about(self, notification: Notification) -> dict[str, str]:
        kind = _DIGEST if notification.is_digest else "alert"
        return {"target": self.target.name, kind: notification.notification_id}


def _already_counted(slot_at: datetime | None, now: datetime) -> bool:
    """Whether it was sent within the last hour: a retry is the same notification."""
    return slot_at is not None and slot_at > now - HOUR


def _decided_by(suppression: Suppression) -> tuple[DeliveryState, str]:
    state = DeliveryState.MUTED if suppression.muted else DeliveryState.ACKNOWLEDGED
    return state, suppression.reason
