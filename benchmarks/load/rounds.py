"""Medians over rounds, with ratios taken within a round to cancel drifts in machine load."""

import statistics
from collections.abc import Sequence


def median(values: Sequence[float]) -> float:
    """The median."""
    return float(statistics.median(values))


def ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """The median of the rounds' ratios.

    >>> ratio([10.0, 30.0, 20.0], [5.0, 10.0, 10.0])
    2.0
    """
    return median([a / b for a, b in zip(over, under, strict=True)])


def spread(values: Sequence[float]) -> str:
    """Format the lowest and highest of the rounds.

    >>> spread([102.4, 99.6])
    '100-102'
    """
    return f"{min(values):.0f}-{max(values):.0f}"
