"""What is handed to a target: one alert, or a digest of several; and how a target answers."""

import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol
from urllib.parse import quote

from msgspec import Struct

from stream_app.contracts.scores import AlertState
from stream_app.errors import RapportError
from stream_app.store.deliveries import DueAlert

NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:digest")
SEVERITIES: Final = ("critical", "warning", "info")
"""Worst first."""
TEST_RULE: Final = "rapport-test"


class NotTaken(RapportError):
    """The target did not take it; it is to be tried again."""


class Refused(NotTaken):
    """The target answers and does not want this notification; others it may take."""


class Unanswered(NotTaken):
    """It was handed over, and nobody knows whether it arrived."""


class Notification(Struct, frozen=True):
    """``alerts``: one, or the newest transition of each episode of a digest, worst first."""

    notification_id: str
    alerts: list[DueAlert]
    is_digest: bool = False
    is_test: bool = False

    @property
    def by_severity(self) -> dict[str, int]:
        """How many alerts of each severity, worst first."""
        counts = Counter(alert.severity for alert in self.alerts)
        return dict(sorted(counts.items(), key=lambda item: _rank(item[0])))

    @property
    def by_rule(self) -> dict[str, int]:
        """How many alerts of each rule, most frequent first."""
        counts = Counter(alert.rule for alert in self.alerts)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    @property
    def over(self) -> int:
        """How many of them are resolved already."""
        return sum(alert.state is AlertState.RESOLVED for alert in self.alerts)


class Channel(Protocol):
    """One way to one target."""

    def send(self, notification: Notification) -> None:
        """Hand it over; to return is to say that the target has it.

        Raises:
            Refused: the target does not want this one.
            Unanswered: it may have arrived.
            NotTaken: it has not arrived. None of the texts holds an address or a secret.
        """


def single(alert: DueAlert) -> Notification:
    """One alert by itself, under the alert's own id."""
    return Notification(alert.alert_id, [alert])


def digest_id(target: str, held: Sequence[DueAlert]) -> str:
    """The same id for the same alerts to the same target, whenever it is made."""
    return str(uuid.uuid5(NAMESPACE, "\0".join([target, *sorted(a.alert_id for a in held)])))


def digest(notification_id: str, held: Sequence[DueAlert]) -> Notification:
    """Several alerts at once: of each episode what is true now."""
    newest: dict[str, DueAlert] = {}
    for alert in held:
        before = newest.get(alert.episode_id)
        if before is None or before.state is AlertState.FIRING:
            newest[alert.episode_id] = alert
    return Notification(notification_id, sorted(newest.values(), key=_worst_first), is_digest=True)


def trial(target: str, now: datetime) -> Notification:
    """A message that says of itself that nothing has happened."""
    identity = str(uuid.uuid4())
    alert = DueAlert(
        alert_id=identity,
        episode_id=identity,
        rule=TEST_RULE,
        session_id=TEST_RULE,
        bundle="none",
        state=AlertState.FIRING,
        episode=1,
        severity="info",
        labels={"test": "true"},
        reason=f"a test of the notification target {target}; nothing has happened",
        value=None,
        threshold=None,
        turns=[],
        occurred_at=now,
        began_at=now,
    )
    return Notification(identity, [alert], is_test=True)


def link(external_url: str, session_id: str) -> str:
    """The session in the console; empty if it is not known where the console is."""
    if not external_url:
        return ""
    return f"{external_url.rstrip('/')}/sessions/{quote(session_id, safe='')}"


def _rank(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def _worst_first(alert: DueAlert) -> tuple[int, bool, float, datetime, str]:
    over = alert.state is AlertState.RESOLVED
    return _rank(alert.severity), over, -(alert.value or 0.0), alert.began_at, alert.alert_id
