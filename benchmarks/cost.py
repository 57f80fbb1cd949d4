"""Cost of a turn by its length: ``seconds = a + b x tokens``, fitted by least squares.

``b`` is the encoder. Of its time a share is spent in products with weights, which grow with their
operations; the rest (activations, normalisation, attention between tokens) grows with the number of
layers. Profiling a machine with one encoder therefore predicts its rate with another one of the
same width from that encoder's graph.
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

    def giga_operations(self, mega_operations_a_token: float, products: float = 1.0) -> float:
        """Operations per second in products, in billions; ``products``: their share of ``b``.

        >>> round(Cost(a=0.001, b=0.0001).giga_operations(20.0, products=0.5))
        400
        """
        return mega_operations_a_token / 1000.0 / (self.b * products)

    def of_encoder(self, other: "Scale", products: float) -> "Cost":
        """The predicted cost of another encoder; ``products``: their share of ``b``.

        >>> Cost(a=0.001, b=0.0001).of_encoder(Scale(operations=0.25, layers=0.5), products=0.6)
        Cost(a=0.001, b=3.5e-05)
        """
        scale = products * other.operations + (1.0 - products) * other.layers
        return Cost(self.a, round(self.b * scale, 12))


class Scale(Struct, frozen=True):
    """Operations per token and layers of an encoder, relative to those of the fitted one."""

    operations: float = 1.0
    layers: float = 1.0


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
