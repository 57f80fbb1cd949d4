"""What the console needs to know of a bundle: its window and its threshold of risk."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stream_app.store.repository import Store
from stream_app.store.tables import bundles


@dataclass(frozen=True, slots=True)
class BundleFacts:
    """``before`` and ``after``: turns a score may see; ``enter``: risk of an alert in [0, 1]."""

    before: int = 0
    after: int = 0
    enter: float | None = None


def read(store: Store) -> dict[str, BundleFacts]:
    """By bundle."""
    manifest = bundles.c.manifest
    query = sa.select(bundles.c.bundle, manifest["window"], manifest["empathy"])
    with store.reading() as connection:
        return {
            bundle: _facts(window, empathy) for bundle, window, empathy in connection.execute(query)
        }


def _facts(window: dict[str, Any] | None, empathy: dict[str, Any] | None) -> BundleFacts:
    window, empathy = window or {}, empathy or {}
    return BundleFacts(window.get("before", 0), window.get("after", 0), empathy.get("enter"))
