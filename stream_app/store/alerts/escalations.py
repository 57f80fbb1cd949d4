"""Steps of escalations: who is to be notified of an alert that nobody answers, and who was.

The rows of an alert are written when a notifier first sees it firing and not muted, one per step
and recipient, with the time at which it is due. A row is sent at most once per confirmation: it
ends ``sent``, or in the state that made it unnecessary, and is never reopened.
"""

import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import Enum
from typing import Any, Final

import sqlalchemy as sa
from msgspec import Struct

from stream_app.contracts.scores import AlertState
from stream_app.store.alerts.deliveries import PROBLEM_CHARS, DueAlert
from stream_app.store.alerts.suppressions import Suppression, find_suppressions
from stream_app.store.database.tables import alerts, escalations, sessions
from stream_app.store.stream.repository import Store


class EscalationState(Enum):
    """``waiting`` until its time; ``due`` to be sent to ``target``; the others are final."""

    WAITING = "waiting"
    DUE = "due"
    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    MUTED = "muted"
    RESOLVED = "resolved"
    REMOVED = "removed"


class NewStep(Struct, frozen=True):
    """A step of an alert's path for one recipient: a target or a rota."""

    step: int
    recipient: str
    due_at: datetime


class EscalatedAlert(Struct, frozen=True, kw_only=True):
    """One row with its alert. ``resolved``: the rule has resolved the alert since."""

    alert: DueAlert
    step: int
    recipient: str
    due_at: datetime
    state: EscalationState
    target: str | None
    attempts: int
    problem: str | None
    resolved: bool


_ALERT_FIELDS: Final = frozenset(DueAlert.__struct_fields__) & frozenset(alerts.c.keys())


class Escalations:
    """The steps of all alerts; the caller always passes the current time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @contextmanager
    def lock(self, target: str) -> Iterator[bool]:
        """Lock a target for the ``with`` block; yields False if another notifier has the lock.

        An advisory lock on PostgreSQL; with SQLite, run one notifier.
        """
        if self._store.engine.dialect.name != "postgresql":
            yield True
            return
        key = zlib.crc32(f"rapport/escalation/{target}".encode())
        with self._store.transaction() as connection:
            yield bool(connection.scalar(sa.select(sa.func.pg_try_advisory_xact_lock(key))))

    def new_alerts(self) -> list[DueAlert]:
        """Firing alerts, not resolved, of which no step is stored yet."""
        stored = sa.exists().where(escalations.c.alert_id == alerts.c.alert_id)
        query = _alerts().where(alerts.c.state == AlertState.FIRING.value, ~_resolved(), ~stored)
        with self._store.reading() as connection:
            return [_due_alert(row) for row in connection.execute(query).mappings()]

    def begin(self, alert: DueAlert, steps: Sequence[NewStep]) -> None:
        """Store the steps of an alert, unless another notifier already has."""
        values = [
            {
                "alert_id": alert.alert_id,
                "session_id": alert.session_id,
                "step": each.step,
                "recipient": each.recipient,
                "due_at": each.due_at,
                "state": EscalationState.WAITING.value,
                "target": None,
                "attempts": 0,
                "tried_at": None,
                "problem": None,
            }
            for each in steps
        ]
        with self._store.transaction() as connection:
            firing = sa.select(alerts.c.alert_id).where(alerts.c.alert_id == alert.alert_id)
            if connection.scalar(firing) is not None:  # else erased in the meantime
                self._store.upsert(connection, escalations, values, keep=True)

    def waiting(self, now: datetime) -> list[EscalatedAlert]:
        """Steps whose time has come, and for which no target was chosen yet."""
        return self._read(
            escalations.c.state == EscalationState.WAITING.value, escalations.c.due_at <= now
        )

    def to_send(self, target: str) -> list[EscalatedAlert]:
        """Steps to send to a target, those with the fewest attempts first."""
        return self._read(
            escalations.c.state == EscalationState.DUE.value, escalations.c.target == target
        )

    def find_suppressions(self, found: Sequence[DueAlert], now: datetime) -> dict[str, Suppression]:
        """Find mutes, acknowledgements and manual resolutions, by episode."""
        with self._store.reading() as connection:
            return find_suppressions(connection, found, now)

    def assign(self, step: EscalatedAlert, target: str) -> None:
        """Choose the target of a waiting step, unless another notifier already has."""
        values = {"state": EscalationState.DUE.value, "target": target, "problem": None}
        self._change(step, EscalationState.WAITING, values)

    def release(self, known: Collection[str]) -> int:
        """Choose again for steps whose target was removed from the file; return their number."""
        table = escalations.c
        lost = (table.state == EscalationState.DUE.value) & table.target.not_in(sorted(known))
        back = {"state": EscalationState.WAITING.value, "target": None}
        with self._store.transaction() as connection:
            return connection.execute(sa.update(escalations).where(lost).values(back)).rowcount

    def note(self, step: EscalatedAlert, problem: str) -> None:
        """Store why a step still waits."""
        self._change(step, step.state, {"problem": problem[:PROBLEM_CHARS]})

    def claim(self, step: EscalatedAlert, now: datetime) -> None:
        """Record, before sending, that the step is being sent: from now on it may arrive."""
        values = {"attempts": step.attempts + 1, "tried_at": now}
        self._change(step, EscalationState.DUE, values)

    def finish(self, step: EscalatedAlert, state: EscalationState, problem: str = "") -> None:
        """End a step."""
        values = {"state": state.value, "problem": problem[:PROBLEM_CHARS] or None}
        self._change(step, step.state, values)

    def _change(self, step: EscalatedAlert, state: EscalationState, values: dict[str, Any]) -> None:
        table = escalations.c
        here = (
            (table.alert_id == step.alert.alert_id)
            & (table.step == step.step)
            & (table.recipient == step.recipient)
            & (table.state == state.value)
        )
        with self._store.transaction() as connection:
            connection.execute(sa.update(escalations).where(here).values(values))

    def _read(self, *conditions: sa.ColumnElement[bool]) -> list[EscalatedAlert]:
        table = escalations.c
        query = (
            _alerts()
            .join(escalations, table.alert_id == alerts.c.alert_id)
            .add_columns(
                table.step,
                table.recipient,
                table.due_at,
                table.state.label("step_state"),
                table.target,
                table.attempts.label("step_attempts"),
                table.problem,
                _resolved().label("resolved"),
            )
            .where(*conditions)
            .order_by(table.attempts, table.due_at, table.alert_id, table.step, table.recipient)
        )
        with self._store.reading() as connection:
            found = connection.execute(query).mappings().all()
        return [
            EscalatedAlert(
                alert=_due_alert(row),
                step=row["step"],
                recipient=row["recipient"],
                due_at=row["due_at"],
                state=EscalationState(row["step_state"]),
                target=row["target"],
                attempts=row["step_attempts"],
                problem=row["problem"],
                resolved=bool(row["resolved"]),
            )
            for row in found
        ]


def _alerts() -> sa.Select[Any]:
    """Alerts with their session's attributes, without hidden sessions."""
    return (
        sa.select(
            *(alerts.c[name] for name in sorted(_ALERT_FIELDS)), sessions.c.team, sessions.c.domain
        )
        .select_from(alerts.outerjoin(sessions, sessions.c.session_id == alerts.c.session_id))
        .where(sessions.c.hidden.is_not(sa.true()))
    )


def _resolved() -> sa.ColumnElement[bool]:
    later = alerts.alias("later")
    return sa.exists().where(
        later.c.episode_id == alerts.c.episode_id, later.c.state == AlertState.RESOLVED.value
    )


def _due_alert(row: sa.RowMapping) -> DueAlert:
    values = {name: row[name] for name in _ALERT_FIELDS}
    values |= {"state": AlertState(row["state"]), "began_at": row["occurred_at"]}
    return DueAlert(team=row["team"], domain=row["domain"], **values)
