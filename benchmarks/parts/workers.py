"""Turns per second by number of workers, on PostgreSQL."""

from typing import Final

from msgspec import Struct

from benchmarks.load import consumer_group, testbed, workload
from benchmarks.load.rounds import median, ratio
from benchmarks.options import Options
from benchmarks.report import markdown

NAME: Final = "workers"
TITLE: Final = "Workers"


class Count(Struct):
    """Turns per second by round."""

    workers: int
    rates: list[float]
    overheads: list[float]


class Result(Struct):
    """``cores`` of the machine: more workers than cores bring no gain."""

    cores: int
    counts: list[Count]


def numbers(cores: int) -> list[int]:
    """Powers of two up to the cores, the cores, and twice the cores.

    >>> numbers(2), numbers(6)
    ([1, 2, 4], [1, 2, 4, 6, 12])
    """
    below = [2**power for power in range(cores.bit_length()) if 2**power < cores]
    return sorted({*below, cores, 2 * cores})


def measure(options: Options) -> Result:
    """Use new workers, topics and tables in every round."""
    counts = [Count(number, [], []) for number in options.size(numbers(options.cores), [1, 2])]
    turns = workload.turns(options.size(4000, 120))
    with testbed.opened(options.bundle, options.kafka) as bed:
        for number in range(options.rounds):
            for count in counts:
                with consumer_group.workers(bed.deployment("postgresql"), count.workers) as workers:
                    burst = workers.burst("run", turns)
                count.rates.append(burst.rate)
                count.overheads.append(burst.overhead)
                options.say(f"round {number + 1}: x{count.workers}: {burst.rate:.1f} turns/s")
    return Result(options.cores, counts)


def table(result: Result) -> str:
    """Relative to one worker."""
    one = result.counts[0]
    rows = [
        [
            str(count.workers),
            f"{median(count.rates):.1f}",
            f"{ratio(count.rates, one.rates):.2f}",
            f"{median(count.overheads):.0f}",
        ]
        for count in result.counts
    ]
    head = ["workers", "turns/s", "one worker = 1", "µs of CPU a turn, not the model"]
    return f"{result.cores} cores.\n\n{markdown.table(head, rows)}"
