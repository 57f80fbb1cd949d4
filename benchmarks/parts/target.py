"""Ten thousand open sessions, a turn every ten seconds from each: is that sustained?

A worker a core on PostgreSQL. First what is sustained in bursts, then the wanted rate and nine
tenths of the sustained one as a Poisson process; the backlog says whether the service keeps up.
"""

from typing import Final

from msgspec import Struct

from benchmarks import group, markdown, schedule, testbed
from benchmarks.group import Flow
from benchmarks.open_sessions import OpenSessions
from benchmarks.options import Options
from benchmarks.rounds import middle

NAME: Final = "target"
TITLE: Final = "Ten thousand live sessions"
SESSIONS: Final = 10_000
RATE: Final = 1000.0
SHORT: Final = 4


class Result(Struct):
    """``bursts``: turns per second. ``memory``: MiB of the largest worker at the end."""

    workers: int
    sessions: int
    wanted: float
    bursts: list[float]
    flows: list[Flow]
    memory: float


def measure(options: Options) -> Result:
    """Each flow lasts a minute."""
    sessions = options.size(SESSIONS, 50)
    wanted = options.size(RATE, 40.0)
    seconds = options.size(60.0, 2.0)
    with testbed.opened(options.bundle, options.kafka) as bed:
        settings = bed.deployment("postgresql")
        open_now = OpenSessions(settings, "open", sessions)
        with group.workers(settings, options.cores) as workers:
            workers.burst("open", open_now.each_once(SHORT), open_now.first_seq)
            bursts, flows = [], []
            for _ in range(options.rounds):
                turns = open_now.turns(options.size(4000, 60))
                bursts.append(workers.burst("open", turns, open_now.first_seq).rate)
            for rate in (0.9 * middle(bursts), wanted):
                at = schedule.arrivals(rate, seconds, seed=1)
                turns = open_now.turns(len(at))
                flows.append(workers.flow("open", turns, at, open_now.first_seq))
                options.say(f"{rate:.0f} turns/s: behind by {flows[-1].backlog}")
            memory = workers.memory()
    return Result(options.cores, sessions, wanted, bursts, flows, memory)


def table(result: Result) -> str:
    """What is sustained, and what happens at the wanted rate."""
    rows = [
        [
            f"{flow.rate:.0f}",
            *(f"{getattr(flow.latency, name):.0f}" for name in ("p50", "p95", "p99")),
            *(str(flow.backlog[place]) for place in (4, 9)),
        ]
        for flow in result.flows
    ]
    sustained = middle(result.bursts)
    words = (
        f"{result.sessions:,} open sessions, {result.workers} workers, PostgreSQL: in bursts "
        f"{sustained:.0f} turns/s, {100 * sustained / result.wanted:.0f} % of the "
        f"{result.wanted:.0f} that are wanted. Largest worker: {result.memory:.0f} MiB."
    )
    head = ["turns/s sent", "p50 ms", "p95 ms", "p99 ms", "behind half-way", "behind at the end"]
    return f"{words}\n\n{markdown.table(head, rows)}"
