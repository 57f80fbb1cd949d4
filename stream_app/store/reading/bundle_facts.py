"""What the console needs to know of a bundle: window, risk threshold, heads and their groups."""

from dataclasses import dataclass
from typing import Any

import msgspec
import sqlalchemy as sa

from stream_app.core.heads import Head
from stream_app.core.perceived import PerceivedGroup, PerceivedValues
from stream_app.store.repository import Store
from stream_app.store.tables import bundles


@dataclass(frozen=True, slots=True)
class BundleFacts:
    """``before`` and ``after``: turns a score may see; ``enter``: risk of an alert in [0, 1].

    ``perceived``: heads that are shown as one value; heads of no group are shown on their own.
    ``heads``: in the order of the manifest.
    """

    before: int = 0
    after: int = 0
    enter: float | None = None
    perceived: tuple[PerceivedGroup, ...] = ()
    heads: tuple[Head, ...] = ()


def read(store: Store) -> dict[str, BundleFacts]:
    """By bundle."""
    parts = (bundles.c.manifest[name] for name in ("window", "empathy", "perceived", "heads"))
    query = sa.select(bundles.c.bundle, *parts)
    with store.reading() as connection:
        return {bundle: _facts(*found) for bundle, *found in connection.execute(query)}


def heads(store: Store) -> list[Head]:
    """The heads of all bundles that have scored here, each once, as the newest bundle has it."""
    query = sa.select(bundles.c.manifest["heads"]).order_by(
        bundles.c.first_used_at.desc(), bundles.c.bundle
    )
    with store.reading() as connection:
        manifests = [_heads(found) for found in connection.scalars(query)]
    found: dict[str, Head] = {}
    for known in manifests:
        for head in known:
            found.setdefault(head.name, head)
    return list(found.values())


def _heads(found: list[dict[str, Any]] | None) -> tuple[Head, ...]:
    return tuple(msgspec.convert(found or [], list[Head]))


def _facts(
    window: dict[str, Any] | None,
    empathy: dict[str, Any] | None,
    perceived: dict[str, Any] | None,
    heads: list[dict[str, Any]] | None,
) -> BundleFacts:
    window, empathy = window or {}, empathy or {}
    groups = msgspec.convert(perceived, PerceivedValues).groups if perceived else ()
    return BundleFacts(
        window.get("before", 0),
        window.get("after", 0),
        empathy.get("enter"),
        tuple(groups),
        _heads(heads),
    )
