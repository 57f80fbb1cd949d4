"""The stored MITI summary of a session."""

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from pydantic import Field

from stream_app.contracts.scores import Standing

Expected = Annotated[float | None, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of the MITI, with its manual's thresholds."""

    value: Annotated[float | None, Field(ge=0, description="Null: denominator too small")]
    fair: float
    good: float
    manual: Annotated[str, Field(description="The manual that defines the thresholds")]
    standing: Annotated[Standing | None, Field(description="Null: too early to determine")]


@dataclass(frozen=True, slots=True)
class Miti:
    """MITI behaviour counts of motivational interviewing, approximated by classifiers."""

    turns: Annotated[int, Field(ge=0, description="Number of counted counsellor turns")]
    volleys: Annotated[
        int, Field(ge=0, description="Number of runs of counsellor turns between two client turns")
    ]
    counts: Annotated[
        dict[str, float], Field(description="Expected number of volleys with a code, by code")
    ]
    measures: Annotated[
        dict[str, Measure],
        Field(
            description="reflection_to_question, complex_reflection_share and open_question_share"
        ),
    ]
    mi_adherent: Annotated[Expected, Field(description="Only 'seeking collaboration'")]
    mi_non_adherent: Annotated[Expected, Field(description="Only 'persuade'")]
    not_counted: Annotated[list[str], Field(description="Codes that no classifier predicts")]


def miti_of(stored: dict[str, Any] | None) -> Miti | None:
    """Decode the stored summary; None for sessions without one."""
    return None if stored is None else msgspec.convert(stored, Miti)
