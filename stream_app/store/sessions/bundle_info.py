"""The parts of a bundle's manifest that the console shows: window, threshold, heads, groups.

A stored manifest never changes (``Store.register_bundle``), so a process reads each one once:
decoding it takes longer than all other work for a small page.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
import sqlalchemy as sa

from stream_app.core.measures.empathy import EmpathyModel
from stream_app.core.measures.heads import Head
from stream_app.core.measures.perceived import PerceivedGroup, PerceivedValues
from stream_app.store.database.tables import bundles
from stream_app.store.stream.repository import Store


class OutcomeMeasure(NamedTuple):
    """How often a risk orders two held-out sessions rightly: the AUROC and its 95 % interval."""

    value: float
    low: float
    high: float
    sessions: int


@dataclass(frozen=True, slots=True)
class BundleInfo:
    """``before``, ``after``: size of the window; ``enter``: alert threshold of the risk in [0, 1].

    ``perceived``: groups of heads shown as one value; others are shown separately. ``heads``: in
    the order of the manifest. ``synthetic``: scores were simulated (``analytics.simulated_store``).
    ``outcomes``: figures of the outcome risks, by name; empty if the manifest has none.
    """

    before: int = 0
    after: int = 0
    enter: float | None = None
    perceived: tuple[PerceivedGroup, ...] = ()
    heads: tuple[Head, ...] = ()
    synthetic: bool = False
    outcomes: Mapping[str, OutcomeMeasure] = field(default_factory=dict)


UNKNOWN: Final = BundleInfo()
_known: WeakKeyDictionary[Store, dict[str, BundleInfo]] = WeakKeyDictionary()
_NAMES: Final = sa.select(bundles.c.bundle)
_MEMBERS: Final = ("window", "empathy", "perceived", "heads", "synthetic", "metrics")
_PARTS: Final = sa.select(bundles.c.bundle, *(bundles.c.manifest[name] for name in _MEMBERS))


def read(store: Store) -> dict[str, BundleInfo]:
    """All bundles' information, by bundle."""
    with store.reading() as connection:
        return of(store, connection, list(connection.scalars(_NAMES)))


def one(store: Store, bundle: str) -> BundleInfo:
    """A bundle's information; ``UNKNOWN`` if it is not registered."""
    found = _known.get(store, {}).get(bundle)
    if found is not None:
        return found
    with store.reading() as connection:
        return of(store, connection, [bundle]).get(bundle, UNKNOWN)


def of(store: Store, connection: sa.Connection, wanted: Collection[str]) -> dict[str, BundleInfo]:
    """These bundles' information, by bundle; those that are not registered are left out."""
    known = _known.setdefault(store, {})
    if missing := [bundle for bundle in wanted if bundle not in known]:
        query = _PARTS.where(bundles.c.bundle.in_(missing))
        known |= {bundle: _info(*found) for bundle, *found in connection.execute(query)}
    return {bundle: known[bundle] for bundle in wanted if bundle in known}


def empathy(store: Store, bundle: str) -> EmpathyModel | None:
    """The bundle's references for the empathy index, with the definition of an opportunity."""
    query = sa.select(bundles.c.manifest["empathy"]).where(bundles.c.bundle == bundle)
    with store.reading() as connection:
        found = connection.scalar(query)
    return msgspec.convert(found, EmpathyModel) if found else None


def synthetic(store: Store) -> frozenset[str]:
    """Bundles whose scores were simulated, not computed."""
    return frozenset(bundle for bundle, info in read(store).items() if info.synthetic)


def heads(store: Store) -> list[Head]:
    """The heads of all registered bundles; of repeated names the newest bundle's."""
    query = sa.select(bundles.c.manifest["heads"]).order_by(
        bundles.c.first_used_at.desc(), bundles.c.bundle
    )
    with store.reading() as connection:
        manifests = [_heads(found) for found in connection.scalars(query)]
    found: dict[str, Head] = {}
    for manifest in manifests:
        for head in manifest:
            found.setdefault(head.name, head)
    return list(found.values())


def _heads(found: list[dict[str, Any]] | None) -> tuple[Head, ...]:
    return tuple(msgspec.convert(found or [], list[Head]))


def _info(
    window: dict[str, Any] | None,
    empathy: dict[str, Any] | None,
    perceived: dict[str, Any] | None,
    heads: list[dict[str, Any]] | None,
    synthetic: bool | None,
    metrics: dict[str, Any] | None,
) -> BundleInfo:
    window, empathy = window or {}, empathy or {}
    groups = msgspec.convert(perceived, PerceivedValues).groups if perceived else ()
    return BundleInfo(
        window.get("before", 0),
        window.get("after", 0),
        empathy.get("enter"),
        tuple(groups),
        _heads(heads),
        bool(synthetic),
        _outcomes((metrics or {}).get("outcomes")),
    )


def _outcomes(measured: dict[str, Any] | None) -> dict[str, OutcomeMeasure]:
    """Read what ``models.outcomes fit`` wrote into the manifest."""
    return {
        name: OutcomeMeasure(row["value"], row["low"], row["high"], row["sessions"])
        for name, row in (measured or {}).get("out_of_fold", {}).items()
    }
