"""The stored MITI summary of a session."""

from dataclasses import dataclass
from typing import Any

import msgspec

from stream_app.contracts.scores import MitiMeasure, MitiSummary, Standing
from stream_app.store.database.described import described_by


@dataclass(frozen=True, slots=True)
@described_by(MitiMeasure)
class Measure:
    """One measure of the MITI, with its manual's thresholds."""

    value: float | None
    fair: float
    good: float
    manual: str
    standing: Standing | None


@dataclass(frozen=True, slots=True)
@described_by(MitiSummary)
class Miti:
    """MITI behaviour counts of motivational interviewing, approximated by classifiers."""

    turns: int
    volleys: int
    counts: dict[str, float]
    measures: dict[str, Measure]
    mi_adherent: float | None
    mi_non_adherent: float | None
    not_counted: list[str]


def miti_of(stored: dict[str, Any] | None) -> Miti | None:
    """Decode the stored summary; None for sessions without one."""
    return None if stored is None else msgspec.convert(stored, Miti)
