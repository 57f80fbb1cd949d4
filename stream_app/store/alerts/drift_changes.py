"""Changes of the data or the model that a check found: each reported once, and acknowledged.

They are about a measure of the whole platform and name nobody.
"""

import math
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from stream_app.errors import StoreError
from stream_app.store.database.tables import drift_changes
from stream_app.store.sessions.scored_turns import NotFound, StateConflict
from stream_app.store.stream.repository import Store


@dataclass(frozen=True, slots=True)
class DriftChange:
    """``name``: which figure of the measure changed; ``about``: the models, or all.

    ``since``: the day from which it is different; ``person``: who acknowledged it.
    """

    change_id: str
    name: str
    measure: str
    about: str
    since: datetime
    value: float
    found_at: datetime
    acknowledged_at: datetime | None = None
    person: str | None = None


@dataclass(frozen=True, slots=True)
class FoundChange:
    """A change that a check found; see ``DriftChange``."""

    name: str
    measure: str
    about: str
    since: datetime
    value: float


def all_of(store: Store, *, unacknowledged: bool = False) -> list[DriftChange]:
    """The changes found so far, newest first."""
    query = sa.select(drift_changes)
    if unacknowledged:
        query = query.where(drift_changes.c.acknowledged_at.is_(None))
    query = query.order_by(drift_changes.c.found_at.desc(), drift_changes.c.change_id)
    with store.reading() as connection:
        return [DriftChange(**row) for row in connection.execute(query).mappings()]


def record(store: Store, found: Iterable[FoundChange]) -> list[DriftChange]:
    """Keep those that are new: no earlier one of the same figure waits to be acknowledged."""
    now = datetime.now(UTC)
    waiting = {(each.name, each.measure, each.about) for each in all_of(store, unacknowledged=True)}
    new = [
        DriftChange(
            str(uuid.uuid4()), each.name, each.measure, each.about, each.since, each.value, now
        )
        for each in found
        if (each.name, each.measure, each.about) not in waiting
    ]
    if new:
        rows = [{name: getattr(each, name) for name in DriftChange.__slots__} for each in new]
        with store.transaction() as connection:
            connection.execute(sa.insert(drift_changes), rows)
    return new


def acknowledge(store: Store, change_id: str, person: str) -> DriftChange:
    """From its day on, the change is the baseline of its measure.

    Raises:
        NotFound: there is no such change.
        StateConflict: it is acknowledged already.
    """
    this = drift_changes.c.change_id == change_id
    change = (
        sa.update(drift_changes)
        .where(this, drift_changes.c.acknowledged_at.is_(None))
        .values(acknowledged_at=datetime.now(UTC), person=person)
    )
    with store.transaction() as connection:
        changed = connection.execute(change).rowcount
        row = connection.execute(sa.select(drift_changes).where(this)).mappings().one_or_none()
    if row is None:
        raise NotFound("there is no such change")
    if not changed:
        raise StateConflict("this change is acknowledged already")
    return DriftChange(**row)


def waiting(store: Store) -> float:
    """How many changes nobody has acknowledged; not a number while the database is away."""
    query = sa.select(sa.func.count()).select_from(drift_changes)
    try:
        with store.reading() as connection:
            found = connection.execute(query.where(drift_changes.c.acknowledged_at.is_(None)))
            return float(found.scalar_one())
    except StoreError:
        return math.nan
