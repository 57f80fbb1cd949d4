"""The order of a bundle's heads and labels, by which compact scores leave out their names.

It follows from the bundle's manifest: the heads of a turn's role in the manifest's order, each with
its labels in order. Probabilities are whole ten-thousandths, reproducible within five of them.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from stream_app.contracts.events import SCORED_ROLES, Role
from stream_app.contracts.scores import MECHANISMS, TOTAL, Distribution, Expressed, Level

SCALE: Final = 10_000
"""Units in 1.0."""
PERCEIVED: Final = "perceived"
EXPRESSED: Final = "expressed"

NO_YES: Final = ("no", "yes")
"""Labels of a binary head, of which compact scores have the probability of yes."""


class HeadLabels(Struct, frozen=True, eq=False):
    """A head: its dimension, whether it has levels, its labels, and the roles of its turns."""

    name: str
    dimension: str
    levels: bool
    labels: tuple[str, ...]
    roles: frozenset[Role]

    @property
    def binary(self) -> bool:
        """Whether the probability of yes says everything."""
        return self.labels == NO_YES


class ScoreLayout(Struct, frozen=True, eq=False):
    """The heads of a bundle by role."""

    by_role: Mapping[Role, tuple[HeadLabels, ...]]

    @classmethod
    def of(cls, heads: Iterable[HeadLabels]) -> "ScoreLayout":
        """The layout of these heads, in the manifest's order."""
        known = tuple(heads)
        return cls(
            {role: tuple(head for head in known if role in head.roles) for role in SCORED_ROLES}
        )

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any]) -> "ScoreLayout":
        """The layout of a bundle, from its manifest as in ``bundle.json`` and in the API."""
        return cls.of(
            HeadLabels(
                str(head["name"]),
                str(head["dimension"]),
                head["kind"] == "level",
                tuple(map(str, head["labels"])),
                frozenset(map(Role, head["roles"])),
            )
            for head in manifest.get("heads", ())
        )


def units(value: float) -> int:
    """A probability in ten-thousandths.

    >>> units(0.12344), units(1.0)
    (1234, 10000)
    """
    return int(value * SCALE + 0.5)


def value_of(
    head: HeadLabels, expressed: Expressed, perceived: Distribution, client: Mapping[str, Any]
) -> Level | Distribution | float | None:
    """Return a score's value of a head; None if it has none, or not this head's labels.

    Of a perceived head, the probability of yes.
    """
    if head.dimension == PERCEIVED:
        return perceived.get(head.name)
    found = (expressed if head.dimension == EXPRESSED else client).get(head.name)
    if isinstance(found, Level):
        return found if head.levels and len(found.probabilities) == len(head.labels) else None
    if isinstance(found, dict) and not head.levels and len(found) == len(head.labels):
        return found if all(map(found.__contains__, head.labels)) else None
    return None


def total_of(expressed: Mapping[str, Any]) -> int | None:
    """The sum of the mechanisms' levels, None without any."""
    levels = [level.level for name in MECHANISMS if isinstance(level := expressed.get(name), Level)]
    return sum(levels) if levels else None


def has_derived_total(expressed: Expressed) -> bool:
    """Whether the total is the sum of the mechanisms' levels, so that it can be left out."""
    return expressed.get(TOTAL) == total_of(expressed)
