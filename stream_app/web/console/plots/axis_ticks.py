"""Round ticks of an axis."""

import math
import re
from typing import Final

ROUND: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
Scale = tuple[float | None, float | None]
"""The least and the greatest value that a measure can have; None: there is no such end."""
_BOUNDS: Final = re.compile(r"\((\d+)-(\d+)\)")
_FROM_ZERO: Final = ("ratio", "seconds", "minutes", "sessions")


def scale_of(unit: str) -> Scale:
    """The ends of a unit's scale, which no axis passes.

    >>> scale_of("level (0-2)"), scale_of("share of sessions")
    ((0.0, 2.0), (0.0, 1.0))
    >>> scale_of("minutes"), scale_of("level (0-2) per month")
    ((0.0, None), (None, None))
    """
    if "per month" in unit:
        return None, None
    if bounds := _BOUNDS.search(unit):
        return float(bounds[1]), float(bounds[2])
    if "share" in unit:
        return 0.0, 1.0
    return (0.0, None) if unit in _FROM_ZERO else (None, None)


def ticks(low: float, high: float, about: int = 4, scale: Scale = (None, None)) -> list[float]:
    """Round values that enclose the range as far as the scale goes, with equal distances.

    >>> ticks(0.31, 0.47)
    [0.3, 0.35, 0.4, 0.45, 0.5]
    >>> ticks(0, 130), ticks(0.5, 0.5)
    ([0.0, 50.0, 100.0, 150.0], [0.4, 0.5, 0.6])
    >>> ticks(0.71, 1.04, scale=(0.0, 1.0))
    [0.7, 0.8, 0.9, 1.0]
    """
    least, most = scale
    low, high = (_within(value, least, most) for value in (low, high))
    if high - low < 1e-9:
        low, high = low - 0.05, high + 0.05
        about = 1
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in ROUND if each * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if least is not None:
        first = max(first, math.ceil(least / step - 1e-9))
    if most is not None:
        last = min(last, math.floor(most / step + 1e-9))
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round(place * step, digits) for place in range(first, last + 1)]


def _within(value: float, least: float | None, most: float | None) -> float:
    at_least = value if least is None else max(value, least)
    return at_least if most is None else min(at_least, most)


def shown(value: float) -> str:
    """A tick's label.

    >>> shown(0.35), shown(150.0), shown(0.5)
    ('0.35', '150', '0.5')
    """
    return f"{value:.6g}"
