"""Example alerts, as read for a target and as table rows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from msgspec import structs

from stream_app.contracts.scores import AlertState
from stream_app.store.alerts.deliveries import DueAlert
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store, open_store

BEGAN = datetime(2026, 1, 5, 10, tzinfo=UTC)
FIRING = DueAlert(
    alert_id="id-1",
    episode_id="e-1",
    rule="low-empathy-risk",
    session_id="s",
    bundle="b-1",
    state=AlertState.FIRING,
    episode=1,
    severity="warning",
    labels={"site": "north"},
    reason="low-empathy risk 0.81, threshold 0.70",
    value=0.81,
    threshold=0.7,
    turns=[5, 7],
    occurred_at=BEGAN,
    began_at=BEGAN,
    team="nights",
    domain="counselling",
)
RESOLVED = structs.replace(
    FIRING,
    alert_id="id-2",
    state=AlertState.RESOLVED,
    reason="low-empathy risk 0.40, threshold 0.50",
    value=0.4,
    threshold=0.5,
    occurred_at=BEGAN + timedelta(minutes=20),
)


def memory_store() -> Store:
    """An SQLite database in memory, for one thread."""
    store = open_store("sqlite://")
    tables.metadata.create_all(store.engine)
    return store


def add(store: Store, name: str, state: str, at: datetime, **changes: Any) -> str:
    """Insert a row of `alerts`, episode 1 of a rule in session `name`; return its id."""
    row = {
        "alert_id": f"{name}/{state}",
        "episode_id": f"episode {name}",
        "rule": "low-empathy-risk",
        "session_id": name,
        "bundle": "b",
        "state": state,
        "previous": "pending" if state == "firing" else "firing",
        "episode": 1,
        "seq": 3,
        "occurred_at": at,
        "value": 0.8,
        "threshold": 0.7,
        "severity": "warning",
        "labels": {},
        "reason": "low-empathy risk 0.80, threshold 0.70",
        "values": {},
        "turns": [3],
        "rules_digest": "",
        **changes,
    }
    with store.transaction() as connection:
        connection.execute(sa.insert(tables.alerts).values(row))
    return str(row["alert_id"])
