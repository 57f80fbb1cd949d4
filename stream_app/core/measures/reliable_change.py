"""Whether a questionnaire's total has changed by more than its error of measurement.

Jacobson & Truax 1991 (doi:10.1037/0022-006X.59.1.12): a difference is reliable if it exceeds 1.96
times the standard error of a difference, SD * sqrt(2 * (1 - r)), with the reliability r. It says
nothing about the cause of the change, and nothing about the counsellor.

========== ====== ==========================================================================
instrument points source
========== ====== ==========================================================================
phq-9      6      NHS Talking Therapies manual; Gyani et al. 2013, doi:10.1016/j.brat.2013.06.004
gad-7      6      5.59, r = .87 over 14 to 28 days: Bischoff et al. 2020, doi:10.5964/pch.v8i1.309
========== ====== ==========================================================================

The manual takes 4 points for GAD-7; the larger number is used here. For the session rating and for
CARE no number is given.
"""

from enum import Enum
from typing import Final

from stream_app.contracts.questionnaires import Instrument

POINTS: Final = {Instrument.PHQ_9: 6.0, Instrument.GAD_7: 6.0}
"""The smallest reliable difference of totals."""


class Change(Enum):
    """A difference from the first total; higher totals of both scales are more symptoms."""

    IMPROVED = "reliable improvement"
    WORSE = "reliable deterioration"
    NONE = "no reliable change"


def change(instrument: Instrument, first: float, latest: float) -> Change | None:
    """The kind of change; None where no number is published.

    >>> change(Instrument.PHQ_9, 18, 12), change(Instrument.PHQ_9, 18, 13)
    (<Change.IMPROVED: 'reliable improvement'>, <Change.NONE: 'no reliable change'>)
    >>> change(Instrument.CARE, 50, 10)
    """
    points = POINTS.get(instrument)
    if points is None:
        return None
    if abs(latest - first) < points:
        return Change.NONE
    return Change.IMPROVED if latest < first else Change.WORSE
