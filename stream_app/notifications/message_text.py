"""Notifications as text for people: rule and numbers, never transcript text."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from stream_app.contracts.scores import AlertState
from stream_app.notifications.notification import Notification, link
from stream_app.store.alerts.deliveries import DueAlert

MAX_LINES: Final = 20
"""Maximum number of alerts listed in a digest; the summary counts all."""
TITLE_CHARS: Final = 150
NOTICE: Final = (
    "Estimated by a model: a reason to look, "
    "not a diagnosis, risk assessment or performance rating."
)


def title(notification: Notification) -> str:
    """A title of one line, at most ``TITLE_CHARS`` long."""
    if notification.is_test:
        return "Rapport: test message"
    if notification.is_notice:
        return _one_line(f"Rapport: {notification.alerts[0].rule}")
    if notification.is_digest:
        return _one_line(f"Rapport: {_more(len(notification.alerts))}")
    [alert] = notification.alerts
    state = "not acknowledged" if notification.escalation else _status(alert)
    return _one_line(
        f"Rapport: {alert.rule} ({alert.severity}) {state}, session {alert.session_id}"
    )


def text(notification: Notification, external_url: str) -> str:
    """The message: what happened, why, and a link to the session."""
    if notification.is_test:
        return f"This is {notification.alerts[0].reason}."
    if notification.is_notice:
        return notification.alerts[0].reason
    if notification.is_digest:
        return "\n".join([digest_summary(notification), "", *_lines(notification, external_url)])
    [alert] = notification.alerts
    facts = {
        "Escalation": escalation_words(notification),
        "Rule": alert.rule,
        "State": _status(alert),
        "Severity": alert.severity,
        "Session": alert.session_id,
        "Team": alert.team,
        "Value": _value(alert),
        "Why": alert.reason,
        "Firing since": _time(alert.began_at),
        "Resolved at": _time(alert.occurred_at) if alert.state is AlertState.RESOLVED else None,
        "Look at it": link(external_url, alert.session_id),
    }
    lines = [f"{name}: {_one_line(fact, None)}" for name, fact in facts.items() if fact]
    return "\n".join([*lines, "", *_protocol(alert), NOTICE])


def escalation_words(notification: Notification) -> str | None:
    """Why the target is notified although others were before; None unless it is an escalation."""
    if notification.escalation is None:
        return None
    step, recipient = notification.escalation
    return f"step {step} ({recipient}): nobody has acknowledged this alert"


def _protocol(alert: DueAlert) -> list[str]:
    """The operator's text on what to do while an alert is firing, with its line breaks."""
    if alert.protocol is None or alert.state is not AlertState.FIRING:
        return []
    lines = [_one_line(line, None) for line in alert.protocol.splitlines()]
    return ["Protocol:", *lines, ""]


def sentence(alert: DueAlert) -> str:
    """One alert in one sentence."""
    return _one_line(
        f"{alert.rule} ({alert.severity}) is {_status(alert)} in session {alert.session_id}: "
        f"{alert.reason}",
        None,
    )


def digest_summary(notification: Notification) -> str:
    """Number of alerts, start time, severities and rules of a digest."""
    since = min(alert.began_at for alert in notification.alerts)
    parts = [
        f"{_more(len(notification.alerts))} since {_time(since)}: "
        f"{_counts(notification.by_severity)}",
        f"by rule: {_counts(notification.by_rule, count_last=True)}",
    ]
    if notification.resolved:
        parts.append(f"{notification.resolved} of them resolved")
    return _one_line("; ".join(parts), None)


def _lines(notification: Notification, external_url: str) -> list[str]:
    shown = notification.alerts[:MAX_LINES]
    lines = [
        f"- {sentence(alert)} {link(external_url, alert.session_id)}".rstrip() for alert in shown
    ]
    if omitted := len(notification.alerts) - len(shown):
        where = f" {external_url}" if external_url else ""
        lines.append(f"- and {omitted} more, all of them in the console{where}")
    return [*lines, "", NOTICE]


def _more(count: int) -> str:
    return f"{count} more alert{'' if count == 1 else 's'}"


def _counts(counts: Mapping[str, int], *, count_last: bool = False) -> str:
    return ", ".join(f"{name} {n}" if count_last else f"{n} {name}" for name, n in counts.items())


def _status(alert: DueAlert) -> str:
    return "firing" if alert.state is AlertState.FIRING else "resolved"


def _value(alert: DueAlert) -> str | None:
    if alert.value is None:
        return None
    limit = "" if alert.threshold is None else f" (threshold {alert.threshold:.2f})"
    return f"{alert.value:.2f}{limit}"


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _one_line(content: str, max_chars: int | None = TITLE_CHARS) -> str:
    """Remove line breaks, which in a producer's names could inject e-mail headers."""
    line = "".join(char if char.isprintable() else " " for char in content)
    return line if max_chars is None or len(line) <= max_chars else f"{line[: max_chars - 1]}…"
