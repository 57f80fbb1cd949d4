"""Round ticks of an axis."""

import math
from typing import Final

ROUND: Final = (1.0, 2.0, 2.5, 5.0, 10.0)


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round values that enclose the range, with equal distances.

    >>> ticks(0.31, 0.47)
    [0.3, 0.35, 0.4, 0.45, 0.5]
    >>> ticks(0, 130), ticks(0.5, 0.5)
    ([0.0, 50.0, 100.0, 150.0], [0.4, 0.5, 0.6])
    """
    if high - low < 1e-9:
        low, high = low - 0.05, high + 0.05
        about = 1
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in ROUND if each * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round(place * step, digits) for place in range(first, last + 1)]


def shown(value: float) -> str:
    """A tick's label.

    >>> shown(0.35), shown(150.0), shown(0.5)
    ('0.35', '150', '0.5')
    """
    return f"{value:.6g}"
