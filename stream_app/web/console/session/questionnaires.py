"""The questionnaires of a session's client as the session page shows them: totals over time."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from stream_app.contracts.questionnaires import SCALES, Instrument
from stream_app.core.measures.reliable_change import Change, change
from stream_app.store.sessions.questionnaires import Filled

TITLES: Final = {
    Instrument.PHQ_9: "PHQ-9",
    Instrument.GAD_7: "GAD-7",
    Instrument.SESSION_RATING: "Session rating",
    Instrument.CARE: "CARE",
}
NINTH: Final = 8
"""The item of PHQ-9 about thoughts of death or self-harm, counted from 0."""


@dataclass(frozen=True, slots=True)
class Course:
    """All totals of one questionnaire, the oldest first; ``change``: the latest from the first.

    ``ninth``: whether the latest PHQ-9 has its ninth item above 0.
    """

    title: str
    lowest: int
    highest: int
    filled: tuple[Filled, ...]
    change: Change | None
    ninth: bool


def courses(found: Iterable[Filled]) -> list[Course]:
    """The course of each questionnaire, in the order of the instruments."""
    every = tuple(found)
    made = []
    for instrument, title in TITLES.items():
        own = tuple(each for each in every if each.instrument is instrument)
        if own:
            lowest, highest = SCALES[instrument].total_range
            several = len(own) > 1
            changed = change(instrument, own[0].total, own[-1].total) if several else None
            ninth = instrument is Instrument.PHQ_9 and bool(own[-1].items[NINTH])
            made.append(Course(title, lowest, highest, own, changed, ninth))
    return made
