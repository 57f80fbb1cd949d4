"""The MITI summary of a session as it was stored."""

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from pydantic import Field

from stream_app.contracts.scores import Standing

Expected = Annotated[float | None, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure with the thresholds of the manual that has them."""

    value: Annotated[float | None, Field(ge=0, description="Null: too little to divide by")]
    fair: float
    good: float
    manual: Annotated[str, Field(description="The manual that states the thresholds")]
    standing: Annotated[Standing | None, Field(description="Null: too early to say")]


@dataclass(frozen=True, slots=True)
class Miti:
    """Motivational interviewing by the MITI's codes, as classifiers would count them."""

    turns: Annotated[int, Field(ge=0, description="Counsellor turns that were counted")]
    volleys: Annotated[
        int, Field(ge=0, description="Runs of counsellor turns between two of the client's")
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
    mi_adherent: Annotated[Expected, Field(description="Seeking collaboration alone")]
    mi_non_adherent: Annotated[Expected, Field(description="Persuade alone")]
    not_counted: Annotated[list[str], Field(description="Codes that no classifier tells")]


def miti_of(stored: dict[str, Any] | None) -> Miti | None:
    """The summary from its column; None for sessions without one."""
    return None if stored is None else msgspec.convert(stored, Miti)
