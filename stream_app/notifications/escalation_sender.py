"""Sends the due steps of escalations to one target."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog
from prometheus_client import Counter

from stream_app.notifications.delays import Delays
from stream_app.notifications.escalation_planner import ending
from stream_app.notifications.notification import (
    Channel,
    DeliveryFailed,
    DeliveryRejected,
    escalated,
)
from stream_app.notifications.rounds import Rounds
from stream_app.store.alerts.escalations import EscalatedAlert, Escalations, EscalationState

log = structlog.get_logger(__name__)

_SENT: Final = "escalated"
_FAILED: Final = "failed"
_Key = tuple[str, int, str]


class EscalationSender(Rounds):
    """Sends until stopped, regardless of the target's cap and quiet hours.

    At least once: a step is due until the target has confirmed it, under the same id. Whether
    somebody has answered the alert is checked immediately before sending.
    """

    def __init__(
        self,
        target: str,
        escalations: Escalations,
        channel: Channel,
        counter: Counter,
        now: Callable[[], datetime],
        every: float,
        max_wait: float,
    ) -> None:
        """``counter`` has the labels `target` and `result`."""
        super().__init__(f"{target}, escalation", every, max_wait)
        self._target = target
        self._escalations = escalations
        self._channel = channel
        self._counter = counter
        for result in (_SENT, _FAILED):
            counter.labels(target, result)  # starts at 0: alert rules see the first
        self._now = now
        self._delays: Delays[_Key] = Delays(every, max_wait, now)

    def round(self) -> int:
        """Send everything that is due for the target; return the number of confirmed messages."""
        sent = 0
        with self._escalations.lock(self._target) as locked:
            if not locked:
                return 0
            for step in self._escalations.to_send(self._target):
                if self._stopped.is_set():
                    break
                if self._delays.is_over(_key(step)):
                    sent += self._send(step)
        return sent

    def _send(self, step: EscalatedAlert) -> bool:
        now = self._now()
        suppressions = self._escalations.find_suppressions([step.alert], now)
        end = ending(step, suppressions.get(step.alert.episode_id))
        if end is not None:
            self._escalations.finish(step, end)
            return False
        self.mark_busy()
        self._escalations.claim(step, now)
        message = escalated(step.alert, step.step, step.recipient, self._target)
        try:
            self._channel.send(message)
        except DeliveryFailed as problem:
            self._note_failure(step, str(problem))
            if not isinstance(problem, DeliveryRejected):
                raise
            self._delays.postpone(_key(step), step.attempts, problem.retry_after)  # this message
            return False
        except Exception as problem:  # noqa: BLE001  # delays only this message
            self._note_failure(step, f"sending failed: {type(problem).__name__}")
            self._delays.postpone(_key(step), step.attempts)
            return False
        self._escalations.finish(step, EscalationState.SENT)
        self._counter.labels(self._target, _SENT).inc()
        self._delays.forget(_key(step))
        log.info("escalation.delivered", target=self._target, step=step.step)
        return True

    def _note_failure(self, step: EscalatedAlert, problem: str) -> None:
        self._escalations.note(step, problem)
        self._counter.labels(self._target, _FAILED).inc()
        log.warning("escalation.failed", target=self._target, problem=problem)


def _key(step: EscalatedAlert) -> _Key:
    return step.alert.alert_id, step.step, step.recipient
