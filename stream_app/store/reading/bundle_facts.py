"""What the console needs to know of a bundle: window, risk threshold, groups of perceived heads."""

from dataclasses import dataclass
from typing import Any

import msgspec
import sqlalchemy as sa

from stream_app.core.perceived import PerceivedGroup, PerceivedValues
from stream_app.store.repository import Store
from stream_app.store.tables import bundles


@dataclass(frozen=True, slots=True)
class BundleFacts:
    """``before`` and ``after``: turns a score may see; ``enter``: risk of an alert in [0, 1].

    ``perceived``: heads that are shown as one value; heads of no group are shown on their own.
    """

    before: int = 0
    after: int = 0
    enter: float | None = None
    perceived: tuple[PerceivedGroup, ...] = ()


def read(store: Store) -> dict[str, BundleFacts]:
    """By bundle."""
    parts = (bundles.c.manifest[name] for name in ("window", "empathy", "perceived"))
    query = sa.select(bundles.c.bundle, *parts)
    with store.reading() as connection:
        return {bundle: _facts(*found) for bundle, *found in connection.execute(query)}


def _facts(
    window: dict[str, Any] | None, empathy: dict[str, Any] | None, perceived: dict[str, Any] | None
) -> BundleFacts:
    window, empathy = window or {}, empathy or {}
    groups = msgspec.convert(perceived, PerceivedValues).groups if perceived else ()
    return BundleFacts(
        window.get("before", 0), window.get("after", 0), empathy.get("enter"), tuple(groups)
    )
