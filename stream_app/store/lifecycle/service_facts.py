"""Facts about the service in the database: progress, bundles, deliveries, retention.

For the administrator's pages; counts and times, nothing about single sessions.
"""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from stream_app.contracts.scores import SessionStatus, Stage
from stream_app.store.alerts.deliveries import DeliveryState
from stream_app.store.database.tables import (
    bundles,
    deliveries,
    erasures,
    holds,
    log_positions,
    notification_targets,
    outbox,
    people,
    session_scores,
    sessions,
    shadow_bundles,
    shadow_scores,
)
from stream_app.store.lifecycle import retention
from stream_app.store.stream.repository import Store


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """``stored``: the offset of the next event to store; ``at``: time of the last batch."""

    topic: str
    partition: int
    stored: int
    at: datetime


@dataclass(frozen=True, slots=True)
class BundleUse:
    """A bundle with its sessions; ``open``: those still open."""

    bundle: str
    digest: str
    first_used_at: datetime
    sessions: int
    open: int


@dataclass(frozen=True, slots=True)
class ShadowUse:
    """A bundle that was registered in the shadow, with the number of turns it has scored."""

    bundle: str
    digest: str
    first_used_at: datetime
    turns: int


@dataclass(frozen=True, slots=True)
class TargetDeliveries:
    """A notification target; counts by state of delivery, and the newest problem of a due one."""

    target: str
    counts: dict[DeliveryState, int]
    problem: str | None

    @property
    def others(self) -> int:
        """Deliveries that are over without having been sent on their own."""
        apart = (DeliveryState.DUE, DeliveryState.HELD, DeliveryState.DELIVERED)
        return sum(number for state, number in self.counts.items() if state not in apart)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Messages that were stored and not yet published; ``since``: the oldest."""

    batches: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Kept:
    """Numbers of stored rows, and what retention and erasure have to observe."""

    sessions: int
    oldest_text_at: datetime | None
    holds: int
    erased: int


@dataclass(frozen=True, slots=True)
class Team:
    """A team with its number of stored sessions and the accounts of this team alone."""

    name: str
    sessions: int
    accounts: list[str]


def progress(store: Store, group: str, topic: str) -> list[PartitionProgress]:
    """The stored position in each partition of a topic."""
    table = log_positions
    query = (
        sa.select(table.c.topic, table.c.partition, table.c.next_offset, table.c.at)
        .where(table.c.consumer_group == group, table.c.topic == topic)
        .order_by(table.c.partition)
    )
    with store.reading() as connection:
        return [PartitionProgress(*row) for row in connection.execute(query)]


def bundle_use(store: Store) -> list[BundleUse]:
    """All bundles that have scored, newest first."""
    is_open = sa.case((session_scores.c.status == SessionStatus.OPEN.value, 1), else_=0)
    query = (
        sa.select(
            bundles.c.bundle,
            bundles.c.digest,
            bundles.c.first_used_at,
            sa.func.count(session_scores.c.session_id),
            sa.func.coalesce(sa.func.sum(is_open), 0),
        )
        .outerjoin(session_scores, session_scores.c.bundle == bundles.c.bundle)
        .group_by(bundles.c.bundle, bundles.c.digest, bundles.c.first_used_at)
        .order_by(bundles.c.first_used_at.desc(), bundles.c.bundle)
    )
    with store.reading() as connection:
        return [BundleUse(*row) for row in connection.execute(query)]


def shadow_use(store: Store) -> list[ShadowUse]:
    """All bundles that were registered in the shadow, newest first."""
    final = sa.case((shadow_scores.c.stage == Stage.FINAL.value, 1), else_=0)
    query = (
        sa.select(
            shadow_bundles.c.bundle,
            shadow_bundles.c.digest,
            shadow_bundles.c.first_used_at,
            sa.func.coalesce(sa.func.sum(final), 0),
        )
        .outerjoin(shadow_scores, shadow_scores.c.bundle == shadow_bundles.c.bundle)
        .group_by(shadow_bundles.c.bundle, shadow_bundles.c.digest, shadow_bundles.c.first_used_at)
        .order_by(shadow_bundles.c.first_used_at.desc(), shadow_bundles.c.bundle)
    )
    with store.reading() as connection:
        return [ShadowUse(*row) for row in connection.execute(query)]


def target_deliveries(store: Store) -> list[TargetDeliveries]:
    """All registered notification targets by name."""
    counts = sa.select(deliveries.c.target, deliveries.c.state, sa.func.count()).group_by(
        deliveries.c.target, deliveries.c.state
    )
    failing = (
        sa.select(deliveries.c.target, deliveries.c.problem)
        .where(
            deliveries.c.problem.is_not(None),
            deliveries.c.state.in_([DeliveryState.DUE.value, DeliveryState.HELD.value]),
        )
        .order_by(deliveries.c.tried_at)
    )
    names = sa.select(notification_targets.c.target).order_by(notification_targets.c.target)
    found: dict[str, dict[DeliveryState, int]] = {}
    with store.reading() as connection:
        for target, state, number in connection.execute(counts):
            found.setdefault(target, {})[DeliveryState(state)] = number
        problems = {row.target: row.problem for row in connection.execute(failing)}
        return [
            TargetDeliveries(name, found.get(name, {}), problems.get(name))
            for name in connection.scalars(names)
        ]


def waiting(store: Store) -> Waiting:
    """The outbox."""
    query = sa.select(sa.func.count(), sa.func.min(outbox.c.created_at))
    with store.reading() as connection:
        return Waiting(*connection.execute(query).one())


def kept(store: Store) -> Kept:
    """Sizes and ages that retention is about."""
    counts = [
        sa.select(sa.func.count()).select_from(table).scalar_subquery()
        for table in (sessions, holds, erasures)
    ]
    with store.reading() as connection:
        stored, held, erased = connection.execute(sa.select(*counts)).one()
    return Kept(stored, retention.oldest_text_stored_at(store), held, erased)


def teams(store: Store) -> list[Team]:
    """Teams of stored sessions and of accounts, by name."""
    counts = (
        sa.select(sessions.c.team, sa.func.count())
        .where(sessions.c.team.is_not(None))
        .group_by(sessions.c.team)
    )
    accounts = (
        sa.select(people.c.team, people.c.name)
        .where(people.c.team.is_not(None), people.c.disabled_at.is_(None))
        .order_by(people.c.name)
    )
    with store.reading() as connection:
        stored = {row.team: row[1] for row in connection.execute(counts)}
        named: dict[str, list[str]] = {}
        for team, name in connection.execute(accounts):
            named.setdefault(team, []).append(name)
    return [
        Team(name, stored.get(name, 0), named.get(name, []))
        for name in sorted(stored.keys() | named.keys())
    ]
