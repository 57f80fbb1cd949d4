"""The highest rate that a group of consumers keeps up with when turns come as they come.

A burst is worked off in full batches, with nothing else to do; a flow costs broker, sender and
consumers more a turn. Sustainable is the highest load without a backlog that goes on growing
(Karimov et al. 2018, "Benchmarking distributed stream data processing systems", section 4).
"""

import itertools
from collections.abc import Callable
from typing import Final

from benchmarks import schedule, workload
from benchmarks.group import Flow, Group

STEPS: Final = 5
LOWEST: Final = 0.5
GROWTH: Final = 0.03
"""Of the turns that come, at most so many may stay behind: the noise of ten seconds."""


def keeps_up(flow: Flow, seconds: float) -> bool:
    """Whether the backlog of a flow of so many seconds did not grow from its middle to its end.

    Three tenths around the third tenth are held against the last three.
    """
    early, late = sum(flow.backlog[2:5]) / 3, sum(flow.backlog[7:10]) / 3
    return late - early <= GROWTH * flow.rate * seconds / 2


def search(holds: Callable[[float], bool], burst: float) -> float:
    """The highest rate that holds, between half of a burst's rate and all of it, by halving.

    Half of the burst is taken for sustained without a look.

    >>> search(lambda rate: rate <= 830, 1000.0)
    828.125
    """
    low, high = LOWEST, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        if holds(middle * burst):
            low = middle
        else:
            high = middle
    return low * burst


def sustained(consumers: Group, burst: float, seconds: float, seed: int) -> float:
    """Turns per second that the consumers keep up with; `burst` is their rate in a burst."""
    tries = itertools.count()

    def holds(rate: float) -> bool:
        at = schedule.arrivals(rate, seconds, seed)
        flow = consumers.flow(f"try{next(tries)}", workload.turns(len(at)), at)
        return keeps_up(flow, seconds)

    return search(holds, burst)
