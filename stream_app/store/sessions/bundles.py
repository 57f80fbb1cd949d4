"""Registered model bundles."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stream_app.store.database.tables import bundles
from stream_app.store.stream.repository import Store


@dataclass(frozen=True, slots=True)
class BundleRow:
    """``digest``: SHA-256 of the manifest. ``manifest``: heads, labels, thresholds, training."""

    bundle: str
    digest: str
    first_used_at: datetime
    manifest: dict[str, Any]


def find(store: Store) -> list[BundleRow]:
    """All registered bundles, newest first."""
    query = sa.select(bundles).order_by(bundles.c.first_used_at.desc(), bundles.c.bundle)
    with store.reading() as connection:
        return [BundleRow(**row) for row in connection.execute(query).mappings()]


def manifest(store: Store, bundle: str) -> dict[str, Any]:
    """The manifest of a registered bundle; empty if there is none."""
    found = one(store, bundle)
    return found.manifest if found is not None else {}


def one(store: Store, bundle: str) -> BundleRow | None:
    """One bundle, or None."""
    with store.reading() as connection:
        query = sa.select(bundles).where(bundles.c.bundle == bundle)
        found = connection.execute(query).mappings().first()
    return BundleRow(**found) if found else None
