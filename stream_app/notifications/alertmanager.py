"""An alert transition as the body of Alertmanager's webhook, version 4.

Receivers for it exist everywhere. It names the session and the numbers; it holds no transcript.
"""

from datetime import datetime
from typing import Any, Final

from stream_app.contracts.scores import AlertState
from stream_app.store.deliveries import DueAlert

NOT_YET: Final = "0001-01-01T00:00:00Z"
"""Alertmanager's word for a firing alert's end."""
RECEIVER: Final = "rapport"


def body(alert: DueAlert, external_url: str) -> dict[str, Any]:
    """The message for one transition; a group holds one episode of one rule in one session."""
    firing = alert.state is AlertState.FIRING
    status = "firing" if firing else "resolved"
    labels = {
        "alertname": alert.rule,
        "session": alert.session_id,
        "bundle": alert.bundle,
        "episode": str(alert.episode),
    }
    annotations = {"summary": f"{alert.rule} is {status} in session {alert.session_id}"}
    if alert.value is not None:
        annotations["value"] = f"{alert.value:.4f}"
    if alert.threshold is not None:
        annotations["threshold"] = f"{alert.threshold:.4f}"
    return {
        "version": "4",
        "groupKey": "/".join(labels.values()),
        "truncatedAlerts": 0,
        "status": status,
        "receiver": RECEIVER,
        "groupLabels": labels,
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": external_url,
        "alerts": [
            {
                "status": status,
                "labels": labels,
                "annotations": annotations,
                "startsAt": _time(alert.began_at),
                "endsAt": NOT_YET if firing else _time(alert.occurred_at),
                "generatorURL": external_url,
                "fingerprint": alert.alert_id,
            }
        ],
    }


def _time(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
