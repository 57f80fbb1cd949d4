"""Delivery state of every alert transition at every notification target.

The table `alerts` is written in the transaction of its batch and serves as the outbox: a transition
without a delivery row is due. Only firing and resolved transitions are delivered.
::

                  ┌─► delivered                      sent separately
    (no row), due ┼─► held ─► digested               sent in a digest
                  └─► filtered, muted, acknowledged  suppressed; `before`: older than the target

A muted firing is due again when the mute has ended and the alert has not.

A due or held row with a ``notification_id`` was sent, but the target did not confirm it. It is
resent under the same id, and neither moved to another notification nor suppressed.
"""

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final

import sqlalchemy as sa
from msgspec import Struct

from stream_app.contracts.scores import AlertState
from stream_app.store.alerts.suppressions import Suppression, find_suppressions
from stream_app.store.database.clocks import database_now
from stream_app.store.database.tables import (
    alerts,
    deliveries,
    notification_targets,
    sessions,
    turns,
)
from stream_app.store.stream.repository import Store

PROBLEM_CHARS: Final = 200
_NOTIFIABLE: Final = (AlertState.FIRING.value, AlertState.RESOLVED.value)
_EPISODES_PER_QUERY: Final = 500
"""SQLite limits the number of bind parameters."""


class DeliveryState(Enum):
    """Delivery state of an alert transition at one target."""

    DUE = "due"
    HELD = "held"
    DELIVERED = "delivered"
    DIGESTED = "digested"
    FILTERED = "filtered"
    MUTED = "muted"
    ACKNOWLEDGED = "acknowledged"
    BEFORE = "before"


class DueAlert(Struct, frozen=True, kw_only=True):
    """One transition and its delivery state at the target.

    ``began_at``: when the episode started firing; ``firing``: delivery state of the firing that
    this transition resolves, None if it is a firing itself; ``held_at``: when it was put on hold
    for a digest; ``slot_at``: when it was last sent, if it counts towards the cap.
    """

    alert_id: str
    episode_id: str
    rule: str
    session_id: str
    bundle: str
    state: AlertState
    episode: int
    severity: str
    labels: dict[str, str]
    reason: str
    value: float | None
    threshold: float | None
    turns: list[int]
    occurred_at: datetime
    began_at: datetime
    team: str | None = None
    domain: str | None = None
    firing: DeliveryState | None = None
    delivery: DeliveryState = DeliveryState.DUE
    attempts: int = 0
    held_at: datetime | None = None
    notification_id: str | None = None
    slot_at: datetime | None = None
    protocol: str | None = None


class PendingDigest(Struct, frozen=True):
    """Held alerts due for a digest, the oldest held since ``oldest``.

    ``notification_id``: of a digest that was sent at ``slot_at`` but not confirmed; None if the
    alerts are not in a digest yet.
    """

    notification_id: str | None
    oldest: datetime
    slot_at: datetime | None


class Deliveries:
    """The deliveries to one target; the caller always passes the current time."""

    def __init__(self, store: Store, target: str) -> None:
        self._store = store
        self.target = target

    @contextmanager
    def lock(self) -> Iterator[bool]:
        """Lock the target for the ``with`` block; yields False if another notifier has the lock.

        An advisory lock on PostgreSQL; with SQLite, run one notifier.
        """
        if self._store.engine.dialect.name != "postgresql":
            yield True
            return
        key = zlib.crc32(f"rapport/{self.target}".encode())
        with self._store.transaction() as connection:
            yield bool(connection.scalar(sa.select(sa.func.pg_try_advisory_xact_lock(key))))

    def register_target(self, now: datetime, running: float = 0.0) -> None:
        """Register a new target and mark all earlier transitions as ``before``.

        ``running``: seconds since the notifier was started. It loads for some of them, and what was
        stored meanwhile is not earlier.
        """
        with self._store.reading() as connection:
            registered = sa.select(notification_targets.c.target).where(
                notification_targets.c.target == self.target
            )
            if connection.scalar(registered) is not None:
                return
        with self._store.transaction() as connection:
            connection.execute(
                sa.insert(notification_targets).values(target=self.target, added_at=now)
            )
            started = database_now(connection) - timedelta(seconds=running)
            past = sa.select(
                alerts.c.alert_id,
                sa.literal(self.target),
                sa.literal(DeliveryState.BEFORE.value),
                sa.literal(0),
            ).where(~_stored_since(started))
            connection.execute(
                sa.insert(deliveries).from_select(["alert_id", "target", "state", "attempts"], past)
            )

    def due(self, limit: int = 100) -> list[DueAlert]:
        """Transitions to decide on or to retry: fewest attempts first, then oldest first.

        A resolved transition is due once the delivery of its firing is decided.
        """
        query, mine, of_firing, firing = self._joined()
        undecided = of_firing.c.state.is_(None) | (of_firing.c.state == DeliveryState.DUE.value)
        resolved = alerts.c.state == AlertState.RESOLVED.value
        query = (
            query.where(
                alerts.c.state.in_(_NOTIFIABLE),
                resolved | sessions.c.hidden.is_not(sa.true()),
                mine.c.state.is_(None) | (mine.c.state == DeliveryState.DUE.value),
                firing.c.alert_id.is_(None) | sa.not_(undecided),
            )
            .order_by(sa.func.coalesce(mine.c.attempts, 0), alerts.c.occurred_at, alerts.c.state)
            .limit(limit)
        )
        return self._read(query)

    def muted(self) -> list[DueAlert]:
        """Alerts that fired while muted and have not been resolved."""
        query, mine, _, _ = self._joined()
        later = alerts.alias("later")
        resolved = sa.exists().where(
            later.c.episode_id == alerts.c.episode_id, later.c.state == AlertState.RESOLVED.value
        )
        query = query.where(
            mine.c.state == DeliveryState.MUTED.value,
            alerts.c.state == AlertState.FIRING.value,
            sessions.c.hidden.is_not(sa.true()),
            ~resolved,
        )
        return self._read(query.order_by(alerts.c.occurred_at, alerts.c.alert_id))

    def reopen(self, found: Sequence[DueAlert]) -> None:
        """Decide again on alerts whose mute has ended."""
        self._update(found, {"state": DeliveryState.DUE.value, "problem": None, "held_at": None})

    def pending_digests(self) -> list[PendingDigest]:
        """Summaries of the alerts held for the next digest and of unconfirmed digests."""
        mine = deliveries.c
        query = (
            sa.select(
                mine.notification_id,
                sa.func.min(mine.held_at).label("oldest"),
                sa.func.max(mine.slot_at).label("slot_at"),
            )
            .where(mine.target == self.target, mine.state == DeliveryState.HELD.value)
            .group_by(mine.notification_id)
            .order_by(sa.func.min(mine.held_at), mine.notification_id)
        )
        with self._store.reading() as connection:
            return [PendingDigest(**row) for row in connection.execute(query).mappings()]

    def held_alerts(self, notification_id: str | None) -> list[DueAlert]:
        """The alerts of an unconfirmed digest; None: the alerts held for the next digest."""
        query, mine, _, _ = self._joined()
        query = query.where(
            mine.c.state == DeliveryState.HELD.value,
            mine.c.notification_id.is_not_distinct_from(notification_id),
        )
        return self._read(query.order_by(mine.c.held_at, alerts.c.occurred_at, alerts.c.state))

    def notifications_since(self, moment: datetime) -> int:
        """Number of notifications sent after ``moment`` that count towards the cap."""
        query = sa.select(sa.func.count(deliveries.c.notification_id.distinct())).where(
            deliveries.c.target == self.target,
            deliveries.c.slot_at > moment,
        )
        with self._store.reading() as connection:
            return connection.scalar(query) or 0

    def find_suppressions(self, found: Sequence[DueAlert], now: datetime) -> dict[str, Suppression]:
        """Find by episode mutes, acknowledgements and manual resolutions that suppress it."""
        by_episode: dict[str, Suppression] = {}
        with self._store.reading() as connection:
            for first in range(0, len(found), _EPISODES_PER_QUERY):
                some = found[first : first + _EPISODES_PER_QUERY]
                by_episode |= find_suppressions(connection, some, now)
        return by_episode

    def suppress(
        self, found: Sequence[DueAlert], state: DeliveryState, reason: str, now: datetime
    ) -> None:
        """Record that the alerts will not be sent, and why."""
        self._write(found, {"state": state.value, "tried_at": now, "problem": _truncate(reason)})

    def hold_for_digest(self, alert: DueAlert, now: datetime) -> None:
        """Hold the alert for the next digest."""
        self._write([alert], {"state": DeliveryState.HELD.value, "held_at": now})

    def claim(
        self, found: Sequence[DueAlert], notification_id: str, now: datetime, *, counted: bool
    ) -> None:
        """Record, before sending, that the alerts are being sent: from now on they may arrive.

        ``counted``: the notification counts towards the cap.
        """
        slot = {"slot_at": now if counted else None}
        self._write(found, {"notification_id": notification_id, "tried_at": now, **slot})

    def mark_delivered(self, found: Sequence[DueAlert], state: DeliveryState) -> None:
        """The target confirmed the claimed alerts."""
        self._update(found, {"state": state.value, "problem": None})

    def mark_failed(self, found: Sequence[DueAlert], problem: str) -> None:
        """The claimed alerts certainly did not arrive."""
        cleared = {"notification_id": None, "slot_at": None}
        self._update(found, {"problem": _truncate(problem), **cleared})

    def mark_unconfirmed(self, found: Sequence[DueAlert], problem: str) -> None:
        """The claimed alerts may have arrived, at this or at an earlier attempt."""
        self._update(found, {"problem": _truncate(problem)})

    def _joined(self) -> tuple[sa.Select[Any], sa.FromClause, sa.FromClause, sa.FromClause]:
        mine = deliveries.alias("mine")
        firing, of_firing = alerts.alias("firing"), deliveries.alias("of_firing")
        due = DeliveryState.DUE.value
        query = sa.select(
            alerts,
            sessions.c.team,
            sessions.c.domain,
            sa.func.coalesce(mine.c.state, due).label("delivery"),
            sa.func.coalesce(mine.c.attempts, 0).label("attempts"),
            mine.c.held_at,
            mine.c.notification_id,
            mine.c.slot_at,
            sa.func.coalesce(firing.c.occurred_at, alerts.c.occurred_at).label("began_at"),
            sa.case(
                (firing.c.alert_id.is_(None), None), else_=sa.func.coalesce(of_firing.c.state, due)
            ).label("firing"),
        ).select_from(
            alerts.outerjoin(
                mine, (mine.c.alert_id == alerts.c.alert_id) & (mine.c.target == self.target)
            )
            .outerjoin(sessions, sessions.c.session_id == alerts.c.session_id)
            .outerjoin(
                firing,
                (alerts.c.state == AlertState.RESOLVED.value)
                & (firing.c.session_id == alerts.c.session_id)
                & (firing.c.bundle == alerts.c.bundle)
                & (firing.c.rule == alerts.c.rule)
                & (firing.c.episode == alerts.c.episode)
                & (firing.c.state == AlertState.FIRING.value),
            )
            .outerjoin(
                of_firing,
                (of_firing.c.alert_id == firing.c.alert_id) & (of_firing.c.target == self.target),
            )
        )
        return query, mine, of_firing, firing

    def _read(self, query: sa.Select[Any]) -> list[DueAlert]:
        with self._store.reading() as connection:
            return [_due(row) for row in connection.execute(query).mappings()]

    def _write(self, found: Sequence[DueAlert], changes: dict[str, object]) -> None:
        """Insert or replace rows; most alerts have none yet."""
        values = [
            {
                "alert_id": alert.alert_id,
                "target": self.target,
                "state": alert.delivery.value,
                "attempts": alert.attempts + ("notification_id" in changes),
                "tried_at": None,
                "problem": None,
                "held_at": alert.held_at,
                "notification_id": alert.notification_id,
                "slot_at": alert.slot_at,
                **changes,
            }
            for alert in found
        ]
        with self._store.transaction() as connection:
            self._store.upsert(connection, deliveries, values, keep=False)

    def _update(self, found: Sequence[DueAlert], changes: dict[str, object]) -> None:
        which = (deliveries.c.alert_id == sa.bindparam("which")) & (
            deliveries.c.target == self.target
        )
        if not found:
            return
        with self._store.transaction() as connection:
            connection.execute(
                sa.update(deliveries).where(which).values(changes),
                [{"which": alert.alert_id} for alert in found],
            )


def _truncate(reason: str) -> str:
    return reason[:PROBLEM_CHARS]


def _due(row: sa.RowMapping) -> DueAlert:
    values = {name: row[name] for name in DueAlert.__struct_fields__}
    return DueAlert(
        **{
            **values,
            "state": AlertState(row["state"]),
            "delivery": DeliveryState(row["delivery"]),
            "firing": DeliveryState(row["firing"]) if row["firing"] else None,
        }
    )


def _stored_since(moment: datetime) -> sa.ColumnElement[bool]:
    """Whether an alert was stored at or after this time; an alert's own time is its producer's.

    It is stored with its turn. One of a timed rule comes later than its turn, and one that ends
    with its session has none: the session is written then.
    """
    with_its_turn = sa.exists().where(
        turns.c.session_id == alerts.c.session_id,
        turns.c.seq == alerts.c.seq,
        turns.c.stored_at >= moment,
    )
    by_time = sa.exists().where(
        sessions.c.session_id == alerts.c.session_id, sessions.c.stored_at >= moment
    )
    return with_its_turn | (by_time & (alerts.c.seq.is_(None) | (alerts.c.occurred_at >= moment)))
