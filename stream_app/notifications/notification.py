"""Notifications (one alert, or a digest of several) and the interface of channels to targets."""

import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol
from urllib.parse import quote

from msgspec import Struct

from stream_app.contracts.scores import AlertState
from stream_app.errors import RapportError
from stream_app.store.alerts.deliveries import DueAlert

NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:digest")
SEVERITIES: Final = ("critical", "warning", "info")
"""Worst first."""
TEST_RULE: Final = "rapport-test"


class DeliveryFailed(RapportError):
    """The notification was not delivered; retry.

    ``retry_after``: seconds that the target asks to wait before the next attempt.
    """

    def __init__(self, problem: str, retry_after: float = 0.0) -> None:
        super().__init__(problem)
        self.retry_after = retry_after


class DeliveryRejected(DeliveryFailed):
    """The target rejected this notification; it may accept others."""


class DeliveryUnconfirmed(DeliveryFailed):
    """The notification was sent, but not confirmed; it may have arrived."""


class Notification(Struct, frozen=True):
    """``alerts``: one, or the newest transition of each episode of a digest, worst first.

    ``escalation``: the step of an escalation and its recipient; None for others. ``is_notice``: it
    is about the installation, not about a session; its one alert holds the words.
    """

    notification_id: str
    alerts: list[DueAlert]
    is_digest: bool = False
    is_test: bool = False
    is_notice: bool = False
    escalation: tuple[int, str] | None = None

    @property
    def by_severity(self) -> dict[str, int]:
        """Number of alerts by severity, worst first."""
        counts = Counter(alert.severity for alert in self.alerts)
        return dict(sorted(counts.items(), key=lambda item: _rank(item[0])))

    @property
    def by_rule(self) -> dict[str, int]:
        """Number of alerts by rule, most frequent first."""
        counts = Counter(alert.rule for alert in self.alerts)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    @property
    def resolved(self) -> int:
        """Number of alerts that are already resolved."""
        return sum(alert.state is AlertState.RESOLVED for alert in self.alerts)


class Channel(Protocol):
    """A connection to one target."""

    def send(self, notification: Notification) -> None:
        """Send the notification; returns when the target has confirmed it.

        Messages of these errors never contain an address or a secret.

        Raises:
            DeliveryRejected: the target rejects this notification.
            DeliveryUnconfirmed: it may have arrived.
            DeliveryFailed: it has not arrived.
        """


def single(alert: DueAlert) -> Notification:
    """A notification of one alert, with the alert's id."""
    return Notification(alert.alert_id, [alert])


def escalated(alert: DueAlert, step: int, recipient: str, target: str) -> Notification:
    """A step of an escalation; its id is the same in every attempt."""
    parts = ["escalation", alert.alert_id, str(step), recipient, target]
    identity = uuid.uuid5(NAMESPACE, "\0".join(parts))
    return Notification(str(identity), [alert], escalation=(step, recipient))


def digest_id(target: str, held: Sequence[DueAlert]) -> str:
    """A deterministic id: the same for the same alerts and target."""
    return str(uuid.uuid5(NAMESPACE, "\0".join([target, *sorted(a.alert_id for a in held)])))


def digest(notification_id: str, held: Sequence[DueAlert]) -> Notification:
    """A digest of several alerts: of each episode the latest transition."""
    newest: dict[str, DueAlert] = {}
    for alert in held:
        before = newest.get(alert.episode_id)
        if before is None or before.state is AlertState.FIRING:
            newest[alert.episode_id] = alert
    return Notification(notification_id, sorted(newest.values(), key=_worst_first), is_digest=True)


def trial_notification(target: str, now: datetime) -> Notification:
    """A test message; its text says that nothing has happened."""
    words = f"a test of the notification target {target}; nothing has happened"
    alert = _of_no_session(TEST_RULE, "info", {"test": "true"}, words, now)
    return Notification(alert.alert_id, [alert], is_test=True)


def notice(rule: str, words: str, now: datetime) -> Notification:
    """A message about the installation, for the people who run it."""
    alert = _of_no_session(rule, "warning", {}, words, now)
    return Notification(alert.alert_id, [alert], is_notice=True)


def _of_no_session(
    rule: str, severity: str, labels: dict[str, str], words: str, now: datetime
) -> DueAlert:
    identity = str(uuid.uuid4())
    return DueAlert(
        alert_id=identity,
        episode_id=identity,
        rule=rule,
        session_id=rule,
        bundle="none",
        state=AlertState.FIRING,
        episode=1,
        severity=severity,
        labels=labels,
        reason=words,
        value=None,
        threshold=None,
        turns=[],
        occurred_at=now,
        began_at=now,
    )


def link(external_url: str, session_id: str) -> str:
    """Link to the session in the console; empty without ``external_url``."""
    if not external_url:
        return ""
    return f"{external_url.rstrip('/')}/sessions/{quote(session_id, safe='')}"


def _rank(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def _worst_first(alert: DueAlert) -> tuple[int, bool, float, datetime, str]:
    resolved = alert.state is AlertState.RESOLVED
    return _rank(alert.severity), resolved, -(alert.value or 0.0), alert.began_at, alert.alert_id
