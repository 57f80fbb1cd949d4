"""Which alert transitions a notification target still has to be told.

The table `alerts` is written in the transaction of its batch, so it is the outbox: what is in it
and not delivered is due. Only what calls somebody is delivered: firing and resolved.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa
from msgspec import Struct

from stream_app.contracts.scores import AlertState
from stream_app.store.repository import Store
from stream_app.store.tables import alerts, deliveries, notification_targets

DUE: Final = "due"
ACKNOWLEDGED: Final = "acknowledged"
BEFORE: Final = "before"
"""The alert was there before the target was."""
_TOLD: Final = (AlertState.FIRING.value, AlertState.RESOLVED.value)


class DueAlert(Struct, frozen=True):
    """One transition to be delivered; ``began_at``: when the episode began to fire."""

    alert_id: str
    rule: str
    session_id: str
    bundle: str
    state: AlertState
    episode: int
    value: float | None
    threshold: float | None
    occurred_at: datetime
    began_at: datetime
    attempts: int


class Deliveries:
    """The deliveries to one target."""

    def __init__(self, store: Store, target: str) -> None:
        self._store = store
        self.target = target

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether nobody else delivers to this target, as long as the ``with`` lasts.

        An advisory lock on PostgreSQL; with SQLite, run one notifier.
        """
        if self._store.engine.dialect.name != "postgresql":
            yield True
            return
        key = zlib.crc32(f"rapport/{self.target}".encode())
        with self._store.transaction() as connection:
            yield bool(connection.scalar(sa.select(sa.func.pg_try_advisory_xact_lock(key))))

    def begin(self) -> None:
        """At first sight of the target, what has happened before counts as known to it."""
        now = datetime.now(UTC)
        with self._store.transaction() as connection:
            known = sa.select(notification_targets.c.target).where(
                notification_targets.c.target == self.target
            )
            if connection.scalar(known) is not None:
                return
            connection.execute(
                sa.insert(notification_targets).values(target=self.target, added_at=now)
            )
            past = sa.select(
                alerts.c.alert_id, sa.literal(self.target), sa.literal(BEFORE), sa.literal(0)
            )
            connection.execute(
                sa.insert(deliveries).from_select(["alert_id", "target", "state", "attempts"], past)
            )

    def due(self, limit: int = 100) -> list[DueAlert]:
        """What is to be delivered: first what was tried least often, then the oldest."""
        began = alerts.alias("began")
        attempts = sa.func.coalesce(deliveries.c.attempts, 0).label("attempts")
        query = (
            sa.select(
                alerts,
                attempts,
                sa.func.coalesce(began.c.occurred_at, alerts.c.occurred_at).label("began_at"),
            )
            .select_from(
                alerts.outerjoin(
                    deliveries,
                    (deliveries.c.alert_id == alerts.c.alert_id)
                    & (deliveries.c.target == self.target),
                ).outerjoin(
                    began,
                    (began.c.session_id == alerts.c.session_id)
                    & (began.c.bundle == alerts.c.bundle)
                    & (began.c.rule == alerts.c.rule)
                    & (began.c.episode == alerts.c.episode)
                    & (began.c.state == AlertState.FIRING.value),
                )
            )
            .where(
                alerts.c.state.in_(_TOLD),
                deliveries.c.state.is_(None) | (deliveries.c.state == DUE),
            )
            .order_by(attempts, alerts.c.occurred_at, alerts.c.state)
            .limit(limit)
        )
        with self._store.reading() as connection:
            return [_due(row) for row in connection.execute(query).mappings()]

    def acknowledged(self, alert: DueAlert) -> None:
        """The target has it."""
        self._write(alert, ACKNOWLEDGED, None)

    def failed(self, alert: DueAlert, problem: str) -> None:
        """The target does not have it, or did not say so."""
        self._write(alert, DUE, problem[:200])

    def _write(self, alert: DueAlert, state: str, problem: str | None) -> None:
        row = {
            "alert_id": alert.alert_id,
            "target": self.target,
            "state": state,
            "attempts": alert.attempts + 1,
            "tried_at": datetime.now(UTC),
            "problem": problem,
        }
        with self._store.transaction() as connection:
            self._store.upsert(connection, deliveries, [row], keep=False)


def _due(row: sa.RowMapping) -> DueAlert:
    values = {name: row[name] for name in DueAlert.__struct_fields__}
    return DueAlert(**{**values, "state": AlertState(row["state"])})
