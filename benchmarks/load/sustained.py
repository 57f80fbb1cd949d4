"""The highest rate at which a group of consumers keeps up with randomly arriving turns.

In a burst, consumers work on full batches and nothing else; a flow costs broker, sender and
consumers more per turn. Sustainable is the highest load without a steadily growing backlog (Karimov
et al. 2018, "Benchmarking distributed stream data processing systems", section 4).
"""

import itertools
from collections.abc import Callable
from typing import Final

from benchmarks.load import schedule, workload
from benchmarks.load.consumer_group import Flow
from benchmarks.load.workload import Turn

Run = Callable[[str, list[Turn], list[float]], Flow]
"""Sends the turns of a run, given its name, at these times."""

STEPS: Final = 5
LOWEST: Final = 0.5
GROWTH: Final = 0.03
"""Allowed growth of the backlog as a share of the arriving turns: noise over ten seconds."""


def keeps_up(flow: Flow, seconds: float) -> bool:
    """Whether the backlog did not grow from the median to the end of a flow.

    Compares the three tenths around the third with the last three.
    """
    early, late = sum(flow.backlog[2:5]) / 3, sum(flow.backlog[7:10]) / 3
    return late - early <= GROWTH * flow.rate * seconds / 2


def search(holds: Callable[[float], bool], burst: float) -> float:
    """The highest rate that holds, by bisection between half the burst rate and all of it.

    Half of the burst rate is assumed to hold.

    >>> search(lambda rate: rate <= 830, 1000.0)
    828.125
    """
    low, high = LOWEST, 1.0
    for _ in range(STEPS):
        median = (low + high) / 2
        if holds(median * burst):
            low = median
        else:
            high = median
    return low * burst


def sustained(run: Run, burst: float, seconds: float, seed: int) -> float:
    """Turns per second that consumers sustain; ``burst`` is their burst rate."""
    tries = itertools.count()

    def holds(rate: float) -> bool:
        at = schedule.arrivals(rate, seconds, seed)
        flow = run(f"try{next(tries)}", workload.turns(len(at)), at)
        return keeps_up(flow, seconds)

    return search(holds, burst)
