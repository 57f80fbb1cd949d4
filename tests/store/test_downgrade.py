"""Deliveries survive a downgrade to the schema before digests and an upgrade afterwards."""

from datetime import UTC, datetime

import sqlalchemy as sa

from stream_app.store.database import tables
from stream_app.store.stream import schema
from stream_app.store.stream.repository import Store

BEFORE_CAPS = "0004"
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def states(store: Store) -> dict[str, str]:
    with store.reading() as connection:
        return dict(connection.execute(sa.text("SELECT alert_id, state FROM deliveries")).all())  # type: ignore[arg-type]


def test_delivered_alerts_stay_delivered_across_a_downgrade(store: Store) -> None:
    kinds = ["due", "held", "delivered", "digested", "filtered", "muted", "acknowledged", "before"]
    with store.transaction() as connection:
        connection.execute(
            sa.insert(tables.deliveries),
            [{"alert_id": kind, "target": "t", "state": kind, "attempts": 1} for kind in kinds],
        )
    schema.downgrade(store, BEFORE_CAPS)
    old = states(store)
    assert {kind for kind, state in old.items() if state == "due"} == {"due", "held"}
    assert old["before"] == "before"
    assert set(old.values()) == {"due", "before", "acknowledged"}
    schema.upgrade(store)
    new = states(store)
    assert new["delivered"] == new["digested"] == "delivered"
    assert (new["due"], new["held"]) == ("due", "due")
