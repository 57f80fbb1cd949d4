"""Recalibrates outcome risks to the outcomes that an installation records (Platt 1999).

The new log-odds are a + b times the old ones. All weights of the bundle's model are multiplied by
b, so that the result is a model of the same kind. a and b - 1 are shrunk towards 0 and chosen as
for heads (``crossvalidation``).
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec import structs

from stream_app.adaptation.fitting import Family, Fit, HeadData
from stream_app.contracts.events import OutcomeKind
from stream_app.core.measures.outcomes import OutcomeModel
from stream_app.errors import RapportError

_DEFINITION: Final = re.compile(r"(\w+)=(\w+)(<=|>=|<|>)(-?\d+(?:\.\d+)?)")


class BadOutcomeDefinition(RapportError):
    """``--outcome`` is not ``NAME=KIND<NUMBER``."""


class OutcomeDefinition(NamedTuple):
    """Which recorded outcomes mean that the event of a risk has happened."""

    risk: str
    kind: str
    sign: str
    limit: float

    def happened(self, value: float) -> bool:
        """Whether a recorded value means the event.

        >>> parse_definition("chat_failed=rating<3").happened(2.0)
        True
        """
        match self.sign:
            case "<":
                return value < self.limit
            case "<=":
                return value <= self.limit
            case ">":
                return value > self.limit
            case _:
                return value >= self.limit

    @property
    def words(self) -> str:
        """Words for the command line."""
        return f"{self.risk}={self.kind}{self.sign}{self.limit:g}"


def parse_definition(text: str) -> OutcomeDefinition:
    """Parse ``NAME=KIND<NUMBER``, with one of the signs <, <=, >, >=.

    Raises:
        BadOutcomeDefinition: it has another form, or an unknown kind.
    """
    found = _DEFINITION.fullmatch(text)
    kinds = [kind.value for kind in OutcomeKind]
    if found is None or found[2] not in kinds:
        raise BadOutcomeDefinition(
            f"--outcome {text}: write NAME=KIND<NUMBER, for example chat_failed=rating<3; kinds "
            f"are {', '.join(kinds)}, signs are <, <=, > and >="
        )
    return OutcomeDefinition(found[1], found[2], found[3], float(found[4]))


def of_outcome(name: str, cases: Sequence[tuple[float, bool, int]]) -> HeadData:
    """The data of an outcome from (risk, whether it happened, counsellor) of each session."""
    risk = np.array([case[0] for case in cases])
    happened = np.array([case[1] for case in cases], dtype=int)
    nothing = np.zeros(len(cases), dtype=bool)
    return HeadData(
        head=name,
        labels=("no", "yes"),
        ordered=False,
        offsets=(),
        probabilities={name: np.stack([1.0 - risk, risk], axis=1)},
        target=np.eye(2)[happened],
        weight=np.ones(len(cases)),
        group=np.array([case[2] for case in cases], dtype=np.int64),
        disputed=nothing,
        blind=nothing,
        families=(Family.SHIFT, Family.SCALE),
    )


def rescaled(model: OutcomeModel, fit: Fit) -> OutcomeModel:
    """The model with the fitted scale and shift, also of whole sessions."""
    scale = 1.0 + (float(fit.weights[1, 1]) if fit.inputs else 0.0)
    shift = float(fit.intercept[1] - fit.intercept[0])
    return structs.replace(
        model,
        intercept=shift + scale * model.intercept,
        weights={name: scale * weight for name, weight in model.weights.items()},
        turn_weights={name: scale * weight for name, weight in model.turn_weights.items()},
        closing=rescaled(model.closing, fit) if model.closing is not None else None,
    )
