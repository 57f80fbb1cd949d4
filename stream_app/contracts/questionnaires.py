"""The questionnaires that events may carry, with the ranges of their items.

============== ===== ====== ===============================================================
instrument     items range  source
============== ===== ====== ===============================================================
phq-9          9     0-3    Kroenke, Spitzer & Williams 2001, J Gen Intern Med 16(9), 606-613
gad-7          7     0-3    Spitzer et al. 2006, doi:10.1001/archinte.166.10.1092
session-rating 4     0-10   Duncan et al. 2003, Journal of Brief Therapy 3(1), 3-12
care           10    1-5    Mercer et al. 2004, doi:10.1093/fampra/cmh621
============== ===== ====== ===============================================================

CARE may have up to two items that do not apply; the mean of the others stands for them.
"""

from collections.abc import Sequence
from enum import Enum
from statistics import fmean
from typing import Final

from msgspec import Struct


class Instrument(Enum):
    """A questionnaire that a client fills in."""

    PHQ_9 = "phq-9"
    GAD_7 = "gad-7"
    SESSION_RATING = "session-rating"
    CARE = "care"


class Scale(Struct, frozen=True):
    """The items of a questionnaire: their number and range, and how many may be null.

    ``whole``: whether answers are whole numbers.
    """

    items: int
    lowest: int
    highest: int
    may_lack: int = 0
    whole: bool = True

    @property
    def total_range(self) -> tuple[int, int]:
        """The lowest and the highest total."""
        return self.items * self.lowest, self.items * self.highest


SCALES: Final = {
    Instrument.PHQ_9: Scale(9, 0, 3),
    Instrument.GAD_7: Scale(7, 0, 3),
    Instrument.SESSION_RATING: Scale(4, 0, 10, whole=False),
    Instrument.CARE: Scale(10, 1, 5, may_lack=2),
}


def fault(instrument: Instrument, items: Sequence[float | None]) -> str | None:
    """Return what is wrong with the answers, or None.

    >>> fault(Instrument.PHQ_9, [0] * 8)
    'phq-9 has 9 items'
    >>> fault(Instrument.GAD_7, [0, 0, 0, 4, 0, 0, 0])
    'an item of gad-7 is outside 0-3'
    """
    scale, name = SCALES[instrument], instrument.value
    given = [item for item in items if item is not None]
    if len(items) != scale.items:
        return f"{name} has {scale.items} items"
    if len(items) - len(given) > scale.may_lack:
        return f"{name} may lack {scale.may_lack} items"
    if not all(scale.lowest <= item <= scale.highest for item in given):
        return f"an item of {name} is outside {scale.lowest}-{scale.highest}"
    if scale.whole and not all(float(item).is_integer() for item in given):
        return f"the items of {name} are whole numbers"
    return None


def total(items: Sequence[float | None]) -> float:
    """The sum of the items; the mean of the others stands for one that does not apply.

    >>> total([1, 2, None])
    4.5
    """
    given = [item for item in items if item is not None]
    return sum(given) + fmean(given) * (len(items) - len(given))
