"""Cost of a turn by its length: ``seconds = a + b x tokens``, fitted by least squares.

``b`` is the encoder's arithmetic: operations per token divided by one core's operations per second.
Measuring a machine with one encoder therefore predicts its rate with another one from the size of
that encoder's graph.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct


class Point(Struct, frozen=True):
    """Mean length of some turns in tokens, and their rate in turns per second."""

    tokens: float
    rate: float


class Cost(Struct, frozen=True):
    """Seconds per turn: ``a`` independent of length, ``b`` per token."""

    a: float
    b: float

    def rate(self, tokens: float) -> float:
        """Turns per second at a mean length.

        >>> Cost(a=0.001, b=0.0001).rate(tokens=40)
        200.0
        """
        return 1.0 / (self.a + self.b * tokens)

    def giga_operations(self, mega_operations_a_token: float) -> float:
        """Operations per second implied by the fit, in billions.

        >>> round(Cost(a=0.001, b=0.0001).giga_operations(20.0))
        200
        """
        return mega_operations_a_token / 1000.0 / self.b

    def scaled(self, operations: float) -> "Cost":
        """The predicted cost of an encoder with ``operations`` times the operations per token."""
        return Cost(self.a, self.b * operations)


def fit(points: Sequence[Point]) -> Cost:
    """Least squares of the relative errors, so that short turns count as much as long ones.

    >>> fit([Point(10, 500.0), Point(30, 250.0), Point(70, 125.0)])
    Cost(a=0.001, b=0.0001)
    """
    if len({point.tokens for point in points}) < 2:
        raise ValueError("fitting a line needs two lengths")
    tokens = np.array([point.tokens for point in points])
    rates = np.array([point.rate for point in points])
    columns = np.stack([rates, rates * tokens], axis=1)
    (a, b), *_ = np.linalg.lstsq(columns, np.ones(len(points)), rcond=None)
    return Cost(round(float(a), 9), round(float(b), 12))


def error(predicted: float, measured: float) -> float:
    """Relative error of the prediction.

    >>> round(error(predicted=110.0, measured=100.0), 2)
    0.1
    """
    return predicted / measured - 1.0
