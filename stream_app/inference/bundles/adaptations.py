"""Adaptations that ``rapport bundle adapt`` wrote in a manifest; ``recalibration`` applies them."""

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import Struct, field

from stream_app.core.measures.heads import Head
from stream_app.errors import BundleError


class Recalibration(Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of one head.

    ``intercept``: one number per label. ``weights``: by input head, a row for each label of the
    head with a number for each label of the input.
    """

    intercept: list[float]
    weights: dict[str, list[list[float]]] = field(default_factory=dict)


class Adaptation(Struct, frozen=True, forbid_unknown_fields=True):
    """Changes of ``rapport bundle adapt`` to a bundle, with their provenance.

    ``parent``, ``parent_digest``: the bundle that it was fitted on. ``record``: counts of the data,
    cross-validation, command line; read by people alone.
    """

    parent: str
    parent_digest: str
    heads: dict[str, Recalibration]
    record: dict[str, Any] = field(default_factory=dict)


AnyHead = TypeVar("AnyHead", bound=Head)


def inputs_of(head: AnyHead, heads: Sequence[AnyHead]) -> list[AnyHead]:
    """The heads whose probabilities may recalibrate ``head``, in the order of the manifest.

    Of the same roles and dimension, so that an output that is restricted for a session is not used
    in another one, and expressed and perceived empathy stay separate.
    """
    return [
        other
        for other in heads
        if other.dimension is head.dimension and set(other.roles) == set(head.roles)
    ]


def check(heads: Sequence[Head], adaptations: Sequence[Adaptation], bundle: str) -> None:
    """Reject adaptations that do not fit the heads.

    Raises:
        BundleError: an unknown head or input, a wrong number of values, or one that is not finite.
    """
    known = {head.name: head for head in heads}
    for adaptation in adaptations:
        for name, change in adaptation.heads.items():
            if name not in known:
                raise BundleError(f"{bundle}: the adaptation names an unknown head: {name}")
            head = known[name]
            allowed = {other.name: other for other in inputs_of(head, heads)}
            shapes = [(change.intercept, len(head.labels))]
            for other, weights in change.weights.items():
                if other not in allowed:
                    raise BundleError(
                        f"{bundle}: {name} cannot be adapted by {other}: an input needs the same "
                        "roles and dimension"
                    )
                if len(weights) != len(head.labels):
                    raise BundleError(f"{bundle}: {name} needs {len(head.labels)} rows of weights")
                shapes += [(row, len(allowed[other].labels)) for row in weights]
            for values, expected in shapes:
                if len(values) != expected or not all(map(math.isfinite, values)):
                    raise BundleError(
                        f"{bundle}: the adaptation of {name} does not fit its labels: adapt the "
                        "bundle again"
                    )
