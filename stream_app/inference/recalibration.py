"""Recalibration of heads to an installation's raters, after the bundle's own calibration.

    p'(head) = softmax(log p(head) + intercept + sum over inputs of weights @ log p(input))

Without inputs it shifts the base rates (Saerens et al. 2002); with the head itself as its input it
is Dirichlet calibration (Kull et al. 2019, section 3); with other heads as well it is a stacked
generaliser (Wolpert 1992). All zeros leave the bundle's probabilities as they are.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from stream_app.core.heads import Head
from stream_app.errors import BundleError

FLOOR: Final = 1e-3
"""Inputs are clipped to this probability, so that no certain head outweighs the others."""
EPSILON: Final = 1e-12

Floats = npt.NDArray[np.float64]


class Recalibration(Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of one head.

    ``intercept``: one number per label. ``weights``: by input head, a row for each label of the
    head with a number for each label of the input.
    """

    intercept: list[float]
    weights: dict[str, list[list[float]]] = field(default_factory=dict)


class Adaptation(Struct, frozen=True, forbid_unknown_fields=True):
    """What ``rapport adapt`` changed in a bundle, with its provenance.

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


def log_inputs(probabilities: Floats) -> Floats:
    """Inputs [n, labels] from probabilities [n, labels]."""
    return np.asarray(np.log(np.clip(probabilities, FLOOR, 1.0)))


def softmax(logits: Floats) -> Floats:
    """Probabilities over the last axis."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def recalibrated(
    probabilities: Mapping[str, Floats], changes: Mapping[str, Recalibration]
) -> dict[str, Floats]:
    """The probabilities [n, labels] by head after one adaptation; all read those before it.

    A row never depends on the other rows, not even in its last bit (no matrix product).
    """
    found = dict(probabilities)
    for name, change in changes.items():
        logits = np.log(probabilities[name] + EPSILON) + np.array(change.intercept)
        for other, weights in change.weights.items():
            read = log_inputs(probabilities[other])
            for column, by_label in enumerate(zip(*weights, strict=True)):
                logits += read[:, column, None] * np.array(by_label)
        found[name] = softmax(logits)
    return found


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
