"""Stores the scores of a bundle in the shadow, in a transaction of their own."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from stream_app.core.session.batch import ShadowScore
from stream_app.store.database.tables import sessions, shadow_bundles, shadow_scores
from stream_app.store.stream.repository import Store


def register(store: Store, bundle: str, digest: str, manifest: dict[str, Any]) -> None:
    """Store the manifest of a bundle in the shadow, whose labels its scores need."""
    row = {
        "bundle": bundle,
        "digest": digest,
        "manifest": manifest,
        "first_used_at": datetime.now(UTC),
    }
    with store.transaction() as connection:
        store.upsert(connection, shadow_bundles, [row], keep=True)


def write(store: Store, scores: Sequence[ShadowScore]) -> None:
    """Store scores of sessions that still exist; an erasure at the same time waits, then deletes.

    Raises:
        StoreError: the database refused them.
    """
    rows = [
        {
            "session_id": score.session_id,
            "seq": score.seq,
            "stage": score.stage.value,
            "bundle": score.bundle,
            "expressed": score.expressed,
            "perceived": score.perceived,
            "client": score.client,
            "abstained": score.abstained,
        }
        for score in scores
    ]
    wanted = sorted({score.session_id for score in scores})
    known = (
        sa.select(sessions.c.session_id)
        .where(sessions.c.session_id.in_(wanted), ~sessions.c.withdrawn, ~sessions.c.hidden)
        .order_by(sessions.c.session_id)
        .with_for_update(read=True)
    )
    with store.transaction() as connection:
        existing = set(connection.scalars(known))
        kept = [row for row in rows if row["session_id"] in existing]
        store.upsert(connection, shadow_scores, kept, keep=False)
