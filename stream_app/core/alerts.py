"""The alert state machine of one rule in one session.

::

    inactive ──risk ≥ enter──► pending ──for ``for_turns`` turns──► firing
        ▲                        │                                    │
        └──────risk < enter──────┘        risk < exit or session end  ▼
        ◄──────────────────── resolved, then ``cooldown_turns`` turns of rest

Two thresholds (enter above exit) keep a risk that hovers from flapping.
"""

import uuid
from datetime import datetime
from typing import Final

from msgspec import Struct

from stream_app.contracts.scores import Alert, AlertState, Severity

ALERT_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:alert")


class AlertRule(Struct, frozen=True):
    """Thresholds in [0, 1]; durations in counsellor turns."""

    name: str = "low-empathy-risk"
    enter: float = 0.7
    exit: float = 0.5
    for_turns: int = 2
    cooldown_turns: int = 5


class AlertStatus(Struct):
    """Where the rule stands in one session."""

    state: AlertState = AlertState.INACTIVE
    episode: int = 0
    turns_in_state: int = 0


class Reading(Struct, frozen=True):
    """The risk after one counsellor turn; ``seq`` is None at the session's end."""

    session_id: str
    bundle: str
    seq: int | None
    occurred_at: datetime
    value: float


def observe(rule: AlertRule, status: AlertStatus, reading: Reading) -> list[Alert]:
    """Advance the rule by one reading; returns the transitions, mostly none."""
    status.turns_in_state += 1
    match status.state:
        case AlertState.INACTIVE if reading.value >= rule.enter:
            status.episode += 1
            transitions = [_move(rule, status, AlertState.PENDING, reading, rule.enter)]
            if rule.for_turns <= 1:
                transitions.append(_move(rule, status, AlertState.FIRING, reading, rule.enter))
            return transitions
        case AlertState.PENDING if reading.value < rule.enter:
            return [_move(rule, status, AlertState.INACTIVE, reading, rule.enter)]
        case AlertState.PENDING if status.turns_in_state + 1 >= rule.for_turns:
            return [_move(rule, status, AlertState.FIRING, reading, rule.enter)]
        case AlertState.FIRING if reading.value < rule.exit:
            return [_move(rule, status, AlertState.RESOLVED, reading, rule.exit)]
        case AlertState.RESOLVED if status.turns_in_state >= rule.cooldown_turns:
            status.state, status.turns_in_state = AlertState.INACTIVE, 0
            return []
        case _:
            return []


def close(rule: AlertRule, status: AlertStatus, reading: Reading) -> list[Alert]:
    """The session has ended: what is pending lapses, what is firing is resolved."""
    match status.state:
        case AlertState.PENDING:
            return [_move(rule, status, AlertState.INACTIVE, reading, rule.enter)]
        case AlertState.FIRING:
            return [_move(rule, status, AlertState.RESOLVED, reading, rule.exit)]
        case _:
            return []


def _move(
    rule: AlertRule, status: AlertStatus, to: AlertState, reading: Reading, threshold: float
) -> Alert:
    previous, status.state, status.turns_in_state = status.state, to, 0
    episode = (reading.session_id, reading.bundle, rule.name, str(status.episode))
    return Alert(
        alert_id=str(uuid.uuid5(ALERT_NAMESPACE, "\0".join((*episode, to.value)))),
        episode_id=str(uuid.uuid5(ALERT_NAMESPACE, "\0".join(episode))),
        rule=rule.name,
        session_id=reading.session_id,
        bundle=reading.bundle,
        state=to,
        previous=previous,
        episode=status.episode,
        seq=reading.seq,
        occurred_at=reading.occurred_at,
        value=reading.value,
        threshold=threshold,
        severity=Severity.WARNING,
        labels={},
        reason=f"low-empathy risk {reading.value:.2f}, threshold {threshold:.2f}",
        values={"low_empathy_risk": reading.value},
        turns=[] if reading.seq is None else [reading.seq],
    )
