"""Begins escalations, and chooses the target of each step when its time has come."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog
from prometheus_client import Counter

from stream_app.notifications.escalation import Escalation
from stream_app.notifications.rounds import Rounds
from stream_app.store.alerts.escalations import (
    EscalatedAlert,
    Escalations,
    EscalationState,
    NewStep,
)
from stream_app.store.alerts.suppressions import Suppression

log = structlog.get_logger(__name__)

NOBODY: Final = "nobody on call"
_RESULT: Final = "nobody_on_call"


class EscalationPlanner(Rounds):
    """Plans until stopped. All progress is in the database, so several may run."""

    def __init__(
        self,
        escalation: Escalation,
        escalations: Escalations,
        counter: Counter,
        now: Callable[[], datetime],
        every: float,
        max_wait: float,
    ) -> None:
        """``counter`` has the labels `target` and `result`."""
        super().__init__("escalation", every, max_wait)
        self._escalation = escalation
        self._escalations = escalations
        self._counter = counter
        for rota in escalation.rotas:
            counter.labels(rota, _RESULT)  # starts at 0: alert rules see the first
        self._now = now

    def round(self) -> int:
        """Store the steps of new alerts and choose targets; return 0, as nothing is sent here."""
        self._begin_new()
        self._escalations.release(self._escalation.targets)
        now = self._now()
        steps = self._escalations.waiting(now)
        suppressions = self._escalations.find_suppressions([each.alert for each in steps], now)
        for step in steps:
            self.mark_busy()
            self._plan(step, suppressions.get(step.alert.episode_id), now)
        return 0

    def _begin_new(self) -> None:
        """The time counts from here: an alert's own times are its producer's.

        An alert that fires during a mute begins when the mute ends.
        """
        found = self._escalations.new_alerts()
        suppressions = self._escalations.find_suppressions(found, self._now())
        for alert in found:
            path = self._escalation.path_of(alert)
            suppression = suppressions.get(alert.episode_id)
            if path is None or (suppression is not None and suppression.muted):
                continue
            now = self._now()
            steps = [
                NewStep(number, recipient, now + step.after)
                for number, step in enumerate(path.steps, 1)
                for recipient in step.to
            ]
            self._escalations.begin(alert, steps)

    def _plan(self, step: EscalatedAlert, suppression: Suppression | None, now: datetime) -> None:
        end = ending(step, suppression)
        if end is not None:
            self._escalations.finish(step, end)
            return
        if not self._escalation.knows(step.recipient):
            log.error("escalation.unknown_recipient", recipient=step.recipient)
            problem = "the file has no such target or rota"
            self._escalations.finish(step, EscalationState.REMOVED, problem)
            return
        target = self._escalation.target_of(step.recipient, now)
        if target is not None:
            self._escalations.assign(step, target)
        elif step.problem != NOBODY:  # reported once; it waits for the next shift
            log.error("escalation.nobody_on_call", rota=step.recipient, alert=step.alert.alert_id)
            self._counter.labels(step.recipient, _RESULT).inc()
            self._escalations.note(step, NOBODY)


def ending(step: EscalatedAlert, suppression: Suppression | None) -> EscalationState | None:
    """The final state of a step that is no longer needed; None if it is."""
    if step.resolved:
        return EscalationState.RESOLVED
    if suppression is None:
        return None
    return EscalationState.MUTED if suppression.muted else EscalationState.ACKNOWLEDGED
