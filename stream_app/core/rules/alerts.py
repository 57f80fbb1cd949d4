"""The alert state machine of one rule in one session.

::

    inactive ──when──► pending ──for some turns, or some time──► firing
        ▲                 │                                        │
        └──── not when ───┘              clear, or the session ends ▼
        ◄──────────────────── resolved, then the cool-down

A rule whose ``for`` is in turns is evaluated after counsellor turns and counts them; a timed rule
is evaluated after every turn, and can also become due without a turn (``fire_overdue``). Time is
event time.
"""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final

from msgspec import Struct, field, structs

from stream_app.contracts.scores import Alert, AlertState, Severity
from stream_app.core.rules.alert_reasons import RULE_GONE, reason
from stream_app.core.rules.conditions import evaluate, holds
from stream_app.core.rules.rules import SEEN, Rule
from stream_app.core.rules.variables import OLD_NAMES, Reading

ALERT_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:alert")
EPISODE_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:alert-episode")
TURNS_KEPT: Final = 20
DIGITS: Final = 6


class AlertStatus(Struct, array_like=True):
    """Status of a rule in one session.

    ``severity``: the episode's, needed if the rule is removed. ``turns_in_state`` counts counsellor
    turns. ``since``: event time of the last transition. ``due_at``: when a pending timed rule
    fires. ``held``: see ``Alert.turns``.
    """

    state: AlertState = AlertState.INACTIVE
    episode: int = 0
    severity: Severity = Severity.WARNING
    turns_in_state: int = 0
    since: datetime | None = None
    due_at: datetime | None = None
    held: list[int] = field(default_factory=list)


class Cause(Enum):
    """Why a transition happened."""

    CONDITION = "condition"
    TIME = "time"
    END = "end"
    WITHHELD = "withheld"
    LANGUAGE = "language"
    HAND_OVER = "hand-over"


class Moment(Struct, frozen=True):
    """Position and time of an evaluation; ``seq`` is None at the session's end."""

    session_id: str
    bundle: str
    seq: int | None
    at: datetime
    counsellor_turn: bool = False
    digest: str = ""
    cause: Cause = Cause.CONDITION


def observe(rule: Rule, status: AlertStatus, reading: Reading, moment: Moment) -> list[Alert]:
    """Advance the rule after a turn; return the transitions, usually none."""
    if not (rule.by_time or moment.counsellor_turn):
        return []
    status.turns_in_state += moment.counsellor_turn
    if status.state is AlertState.RESOLVED and not _rested(rule, status, moment):
        return []
    when = _holds(rule, reading)
    if when and moment.seq is not None and status.state is not AlertState.INACTIVE:
        status.held.append(moment.seq)
        del status.held[:-TURNS_KEPT]
    match status.state:
        case AlertState.INACTIVE if when:
            return _begin(rule, status, reading, moment)
        case AlertState.PENDING:
            return _wait(rule, status, when, reading, moment)
        case AlertState.FIRING if _cleared(rule, when, reading):
            return [_move(rule, status, AlertState.RESOLVED, reading, moment)]
        case _:
            return []


def _holds(rule: Rule, reading: Reading) -> bool | None:
    """Whether the condition holds, and what the alert would say speaks for it."""
    when = holds(rule.when, reading)
    return when and (reading.evidence is not None or not rule.needs_evidence)


def _wait(
    rule: Rule, status: AlertStatus, when: bool | None, reading: Reading, moment: Moment
) -> list[Alert]:
    if not when:
        return [_move(rule, status, AlertState.INACTIVE, reading, moment)]
    if rule.lasts.time is not None:
        status.due_at = _later(status.since or moment.at, rule.lasts.time)
        return fire_overdue(rule, status, reading, moment)
    if status.turns_in_state + 1 >= rule.lasts.turns:
        return [_move(rule, status, AlertState.FIRING, reading, moment)]
    return []


def fire_overdue(rule: Rule, status: AlertStatus, reading: Reading, moment: Moment) -> list[Alert]:
    """Fire a pending rule whose time has passed; the alert has the due time."""
    due_at = status.due_at
    if status.state is not AlertState.PENDING or due_at is None or due_at > moment.at:
        return []
    seq = status.held[-1] if status.held else moment.seq
    at_its_time = structs.replace(moment, at=due_at, seq=seq, cause=Cause.TIME)
    return [_move(rule, status, AlertState.FIRING, reading, at_its_time)]


def close(rule: Rule, status: AlertStatus, reading: Reading, moment: Moment) -> list[Alert]:
    """End the rule's alert, as no more turns will be scored: pending lapses, firing resolves."""
    match status.state:
        case AlertState.PENDING:
            return [_move(rule, status, AlertState.INACTIVE, reading, moment)]
        case AlertState.FIRING:
            return [_move(rule, status, AlertState.RESOLVED, reading, moment)]
        case _:
            return []


def abandon(name: str, status: AlertStatus, moment: Moment, reason: str = RULE_GONE) -> list[Alert]:
    """End the alert of a removed rule or bundle: pending lapses, firing resolves."""
    previous, held = status.state, list(status.held)
    status.state, status.turns_in_state, status.held = AlertState.INACTIVE, 0, []
    status.since = status.due_at = None
    if previous not in (AlertState.PENDING, AlertState.FIRING):
        return []
    lapses = previous is AlertState.PENDING
    to = AlertState.INACTIVE if lapses else AlertState.RESOLVED
    identity = (moment.session_id, moment.bundle, name, str(status.episode))
    return [
        Alert(
            **ids_of(identity, to),
            rule=name,
            severity=status.severity,
            labels={},
            session_id=moment.session_id,
            bundle=moment.bundle,
            state=to,
            previous=previous,
            episode=status.episode,
            seq=moment.seq,
            occurred_at=moment.at,
            reason=reason,
            value=None,
            threshold=None,
            values={},
            turns=held,
            rules_digest=moment.digest,
        )
    ]


def ids_of(identity: tuple[str, ...], to: AlertState) -> dict[str, str]:
    """The ids of a transition of an episode: (session, bundle, rule, number)."""
    return {
        "alert_id": str(uuid.uuid5(ALERT_NAMESPACE, "\0".join((*identity, to.value)))),
        "episode_id": str(uuid.uuid5(EPISODE_NAMESPACE, "\0".join(identity))),
    }


def _rested(rule: Rule, status: AlertStatus, moment: Moment) -> bool:
    """Whether the cool-down ended before this turn; the turn that ends it cannot start the rule."""
    if rule.cooldown.time is not None:
        over = status.since is None or moment.at >= _later(status.since, rule.cooldown.time)
    else:
        over = status.turns_in_state > rule.cooldown.turns
    if over:
        status.state, status.turns_in_state = AlertState.INACTIVE, 0
    return over


def _later(moment: datetime, span: timedelta) -> datetime:
    """The sum, or the last representable moment if the sum lies beyond it."""
    last = datetime.max.replace(tzinfo=UTC)
    return moment + span if moment <= last - span else last


def _cleared(rule: Rule, when: bool | None, reading: Reading) -> bool:
    if rule.clear is None:
        return when is False
    return holds(rule.clear, reading) is True


def _begin(rule: Rule, status: AlertStatus, reading: Reading, moment: Moment) -> list[Alert]:
    turns = reading.own_turns if rule.about_empathy else reading.aggregates.counsellor.turns
    few = turns < rule.min_scored_turns
    if few or not rule.applies_to.covers(reading.facts):
        return []
    status.episode += 1
    status.severity = rule.severity
    status.held = [moment.seq] if moment.seq is not None else []
    transitions = [_move(rule, status, AlertState.PENDING, reading, moment)]
    if rule.lasts.time is not None:
        status.due_at = _later(moment.at, rule.lasts.time)
        transitions += fire_overdue(rule, status, reading, moment)
    elif rule.lasts.turns <= 1:
        transitions.append(_move(rule, status, AlertState.FIRING, reading, moment))
    return transitions


def _move(
    rule: Rule, status: AlertStatus, to: AlertState, reading: Reading, moment: Moment
) -> Alert:
    previous, status.state, status.turns_in_state = status.state, to, 0
    status.since, status.due_at = moment.at, None
    identity = (moment.session_id, moment.bundle, rule.name, str(status.episode))
    value = evaluate(rule.value, reading) if rule.value else None
    threshold = evaluate(rule.threshold, reading) if rule.threshold else None
    shown = {name: float(found) for name, found in reading.present(rule.shown).items()}
    begins = to in (AlertState.PENDING, AlertState.FIRING)
    seen = reading.evidence if begins and SEEN in rule.placeholders else None
    words = seen.words if seen else None
    alert = Alert(
        **ids_of(identity, to),
        rule=rule.name,
        severity=rule.severity,
        labels=rule.labels,
        session_id=moment.session_id,
        bundle=moment.bundle,
        state=to,
        previous=previous,
        episode=status.episode,
        seq=moment.seq,
        occurred_at=moment.at,
        reason=reason(rule, to, moment.cause.value, value, threshold, shown, words),
        value=value,
        threshold=threshold,
        values=_values(shown),
        turns=list(seen.turns if seen else status.held),
        rules_digest=moment.digest,
        protocol=rule.protocol,
    )
    if to in (AlertState.INACTIVE, AlertState.RESOLVED):
        status.held = []
    return alert


def _values(shown: Mapping[str, float]) -> dict[str, float]:
    """The values, also under names of earlier releases."""
    found = {name: round(value, DIGITS) for name, value in shown.items()}
    old = {OLD_NAMES[name]: value for name, value in found.items() if name in OLD_NAMES}
    return {**found, **old}
