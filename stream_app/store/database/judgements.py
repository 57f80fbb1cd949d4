"""People's answers to whether an alert was justified, as counted for a rule's precision."""

from enum import Enum
from typing import Final


class Reason(Enum):
    """Whether an alert was justified.

    ``justified`` counts for the rule's precision, ``false-alarm`` against it, ``not-now`` is not
    counted. ``justified-handled`` means the same as ``justified``: earlier releases stored it, and
    their clients may still send it.
    """

    JUSTIFIED = "justified"
    JUSTIFIED_HANDLED = "justified-handled"
    FALSE_ALARM = "false-alarm"
    NOT_NOW = "not-now"


JUSTIFIED: Final = (Reason.JUSTIFIED.value, Reason.JUSTIFIED_HANDLED.value)
JUDGED: Final = (*JUSTIFIED, Reason.FALSE_ALARM.value)
"""Stored reasons that are judgements; the last one of an alert counts."""
