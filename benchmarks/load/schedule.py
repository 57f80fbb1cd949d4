"""Send times of an open loop, independent of how the service keeps up."""

import random
from collections.abc import Sequence

import numpy as np
from msgspec import Struct


class Latency(Struct, frozen=True):
    """Milliseconds from the intended sending to the commit."""

    p50: float
    p95: float
    p99: float
    worst: float
    turns: int


def arrivals(rate: float, seconds: float, seed: int) -> list[float]:
    """Arrival times of a Poisson process, which models many independent sessions.

    Args:
        rate: turns per second on average.
        seconds: end of the schedule.
        seed: equal seeds give equal times.

    >>> [round(at, 2) for at in arrivals(rate=2.0, seconds=2.0, seed=1)]
    [0.07, 1.01, 1.73, 1.88]
    """
    if rate <= 0:
        raise ValueError("the rate must be above 0")
    chance = random.Random(seed)
    times: list[float] = []
    at = chance.expovariate(rate)
    while at < seconds:
        times.append(at)
        at += chance.expovariate(rate)
    return times


def even(rate: float, seconds: float) -> list[float]:
    """Equally spaced times, the first at 0.

    >>> even(rate=4.0, seconds=1.0)
    [0.0, 0.25, 0.5, 0.75]
    """
    if rate <= 0:
        raise ValueError("the rate must be above 0")
    return [number / rate for number in range(int(rate * seconds))]


def latency(intended: Sequence[float], committed: Sequence[float]) -> Latency:
    """Latency percentiles from each turn's intended send time.

    Counting from the actual send time would omit the delay of a blocked sender (coordinated
    omission).

    >>> latency([0.0, 1.0], [0.01, 1.03])
    Latency(p50=20.0, p95=29.0, p99=29.8, worst=30.0, turns=2)
    """
    millis = (np.array(committed) - np.array(intended)) * 1000.0
    p50, p95, p99, worst = np.percentile(millis, [50, 95, 99, 100]).round(3).tolist()
    return Latency(p50, p95, p99, worst, len(millis))


def backlog(intended: Sequence[float], committed: Sequence[float], parts: int = 10) -> list[int]:
    """Turns due but not committed at the end of each tenth of the schedule.

    >>> backlog([0.0, 1.0, 2.0, 3.0], [0.5, 3.5, 3.6, 3.7], parts=3)
    [1, 2, 3]
    """
    due, done = np.sort(np.array(intended)), np.sort(np.array(committed))
    looks = np.linspace(due[0], due[-1], parts + 1)[1:]
    behind = np.searchsorted(due, looks, "right") - np.searchsorted(done, looks, "right")
    return [int(count) for count in behind]
