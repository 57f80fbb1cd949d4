"""Exports alerts with people's answers, one row per alert."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from stream_app.analytics.views.columns import Kind
from stream_app.contracts.scores import AlertState
from stream_app.findings.exports.columns import Row, attributes_of, with_session
from stream_app.findings.exports.paging import cards
from stream_app.store.accounts.people import Person
from stream_app.store.alerts import alerts
from stream_app.store.alerts.alerts import ActionKind, AlertRead
from stream_app.store.alerts.visible_alerts import redact_for
from stream_app.store.sessions.sessions import SessionCard, SessionFilter
from stream_app.store.stream.repository import Store

ALERTS: Final = with_session(
    "episode_id",
    "Identifies the alert",
    ("bundle", Kind.TEXT, "The bundle that scored the session"),
    ("rule", Kind.TEXT, "As the file of rules names it"),
    ("severity", Kind.TEXT, "info, warning or critical"),
    ("state", Kind.TEXT, "pending, firing, acknowledged, resolved or lapsed"),
    ("reason", Kind.TEXT, "In words, without text of turns"),
    ("value", Kind.NUMBER, "What the rule compared when it fired"),
    ("threshold", Kind.NUMBER, "What it was compared with"),
    ("began_at", Kind.TIME, "First transition, event time"),
    ("fired_at", Kind.TIME, "Event time; empty: it never fired"),
    ("ended_at", Kind.TIME, "Event time at which the rule resolved it"),
    ("acknowledged_at", Kind.TIME, "First acknowledgement, the service's time"),
    ("judgement", Kind.TEXT, "The last one: justified or false-alarm; empty: none"),
    (
        "answers",
        Kind.JSON,
        "Actions of people in order: at, kind, reason, person (not for analysts), "
        "note (only for supervisors)",
    ),
)


def alert_rows(store: Store, person: Person, chosen: SessionFilter) -> Iterator[Sequence[Row]]:
    """Yield pages of alerts, as much of them as this person may see."""
    for page in cards(store, person, chosen):
        by_id = {card.session_id: card for card in page}
        found = alerts.of_sessions(store, person.scope, list(by_id))
        yield [_row(by_id[each.session_id], redact_for(person, each)) for each in found]


def _row(card: SessionCard, alert: AlertRead) -> Row:
    times = {step.state: step.occurred_at for step in reversed(alert.transitions)}
    acknowledged = [act.at for act in alert.actions if act.kind is ActionKind.ACKNOWLEDGE]
    return {
        **attributes_of(card),
        "episode_id": alert.episode_id,
        "bundle": alert.bundle,
        "rule": alert.rule,
        "severity": alert.severity.value,
        "state": alert.state.value,
        "reason": alert.reason,
        "value": alert.value,
        "threshold": alert.threshold,
        "began_at": alert.began_at,
        "fired_at": times.get(AlertState.FIRING),
        "ended_at": times.get(AlertState.RESOLVED),
        "acknowledged_at": min(acknowledged, default=None),
        "judgement": alert.judgement,
        "answers": [
            {
                name: value
                for name, value in msgspec.to_builtins(action).items()
                if name != "action_id"
            }
            for action in alert.actions
        ],
    }
