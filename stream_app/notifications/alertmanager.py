"""Notifications in the format of Alertmanager's webhook, version 4.

Many systems can receive it. It contains the session's id and numbers, never transcript text.
"""

from datetime import datetime
from typing import Any, Final

from stream_app.contracts.scores import AlertState
from stream_app.notifications.message_text import digest_summary, escalation_words, sentence
from stream_app.notifications.notification import Notification, link
from stream_app.store.alerts.deliveries import DueAlert

NO_END: Final = "0001-01-01T00:00:00Z"
"""Alertmanager's ``endsAt`` of an alert that is still firing."""
MAX_ALERTS: Final = 100
"""Maximum number of alerts in one body; ``truncatedAlerts`` counts the rest."""


def body(notification: Notification, receiver: str, external_url: str) -> dict[str, Any]:
    """Build the request body for one alert or a digest.

    The group of one alert is its episode, so that firing and resolved share a ``groupKey``. A
    digest is its own group, firing while any of its alerts is.
    """
    shown = [_alert(alert, external_url) for alert in notification.alerts[:MAX_ALERTS]]
    if notification.is_digest:
        group = {"digest": notification.notification_id}
        annotations = {"summary": digest_summary(notification)}
    else:
        [alert] = notification.alerts
        group = _identity(alert)
        annotations = shown[0]["annotations"]
        if words := escalation_words(notification):
            annotations["escalation"] = words
    firing = any(alert.state is AlertState.FIRING for alert in notification.alerts)
    return {
        "version": "4",
        "groupKey": "/".join(group.values()),
        "truncatedAlerts": len(notification.alerts) - len(shown),
        "status": "firing" if firing else "resolved",
        "receiver": receiver,
        "groupLabels": group,
        "commonLabels": _common([alert["labels"] for alert in shown]),
        "commonAnnotations": annotations,
        "externalURL": external_url,
        "alerts": shown,
    }


def _alert(alert: DueAlert, external_url: str) -> dict[str, Any]:
    firing = alert.state is AlertState.FIRING
    facts = {
        "summary": sentence(alert),
        "reason": alert.reason,
        "value": "" if alert.value is None else f"{alert.value:.4f}",
        "threshold": "" if alert.threshold is None else f"{alert.threshold:.4f}",
        "turns": ", ".join(map(str, alert.turns)),
        "protocol": (alert.protocol or "") if firing else "",
    }
    return {
        "status": "firing" if firing else "resolved",
        "labels": _labels(alert),
        "annotations": {name: fact for name, fact in facts.items() if fact},
        "startsAt": _time(alert.began_at),
        "endsAt": NO_END if firing else _time(alert.occurred_at),
        "generatorURL": link(external_url, alert.session_id),
        "fingerprint": alert.alert_id,
    }


def _identity(alert: DueAlert) -> dict[str, str]:
    return {
        "alertname": alert.rule,
        "session": alert.session_id,
        "bundle": alert.bundle,
        "episode": str(alert.episode),
    }


def _labels(alert: DueAlert) -> dict[str, str]:
    about = {"severity": alert.severity, "team": alert.team, "domain": alert.domain}
    return {
        **alert.labels,
        **{name: value for name, value in about.items() if value},
        **_identity(alert),
    }


def _common(labels: list[dict[str, str]]) -> dict[str, str]:
    first, *others = labels
    return {
        name: value
        for name, value in first.items()
        if all(other.get(name) == value for other in others)
    }


def _time(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
