"""From the intended sending of a turn to its commit, at shares of the sustained rate.

The sustained rate is measured first, in the same deployment. Turns then come as a Poisson process
from an open loop; the row ``lone`` is a turn now and then that finds the worker idle.
"""

from typing import Final

from msgspec import Struct

from benchmarks import group, markdown, schedule, testbed, workload
from benchmarks.errors import Unavailable
from benchmarks.group import Flow
from benchmarks.options import Options
from benchmarks.rounds import middle

NAME: Final = "latency"
TITLE: Final = "Latency"
SHARES: Final = (0.1, 0.5, 0.8, 0.95)
LONE_RATE: Final = 4.0


class Load(Struct):
    """``share`` of the sustained rate; 0: lone turns."""

    share: float
    rounds: list[Flow]


class Deployment(Struct):
    """Sustained: turns per second in bursts, one a round."""

    database: str
    workers: int
    sustained: list[float]
    loads: list[Load]


class Result(Struct):
    """One entry for each kind of deployment."""

    broker: str
    deployments: list[Deployment]


def measure(options: Options) -> Result:
    """One worker on SQLite, then a worker a core on PostgreSQL."""
    with testbed.opened(options.bundle, options.kafka) as bed:
        found = [_deployment(options, bed, "sqlite", 1)]
        if not options.quick:
            try:
                found.append(_deployment(options, bed, "postgresql", options.cores))
            except Unavailable as problem:
                options.say(str(problem))
        return Result(bed.broker_name, found)


def _deployment(options: Options, bed: testbed.Testbed, database: str, workers: int) -> Deployment:
    burst = workload.turns(options.size(2000, 120) * workers)
    seconds = options.size(15.0, 1.5)
    loads = [Load(share, []) for share in (0.0, *SHARES)]
    with group.workers(bed.deployment(database), workers) as consumers:
        sustained = [consumers.burst(f"burst{i}", burst).rate for i in range(options.rounds)]
        limit = middle(sustained)
        options.say(f"{database} x{workers}: {limit:.1f} turns/s")
        for number in range(options.rounds):
            for place, load in enumerate(loads):
                at = (
                    schedule.arrivals(load.share * limit, seconds, seed=number)
                    if load.share
                    else schedule.even(LONE_RATE, seconds)
                )
                if not at:
                    continue
                flow = consumers.flow(f"load{place}round{number}", workload.turns(len(at)), at)
                load.rounds.append(flow)
                options.say(f"round {number + 1}: {load.share:.0%}: {flow.latency.p50:.1f} ms")
    return Deployment(database, workers, sustained, loads)


def table(result: Result) -> str:
    """One row a load, medians of the rounds' percentiles."""
    rows = []
    for deployment in result.deployments:
        where = f"{deployment.database} x{deployment.workers}"
        for load in deployment.loads:
            if not load.rounds:
                continue
            flows = load.rounds
            rows.append(
                [
                    f"{where}, {load.share:.0%}" if load.share else f"{where}, a lone turn",
                    f"{middle([flow.rate for flow in flows]):.1f}",
                    *(
                        f"{middle([getattr(flow.latency, name) for flow in flows]):.0f}"
                        for name in ("p50", "p95", "p99")
                    ),
                    f"{middle([flow.backlog[-1] for flow in flows]):.0f}",
                    f"{middle([flow.sender_late for flow in flows]):.1f}",
                ]
            )
    head = ["load", "turns/s", "p50 ms", "p95 ms", "p99 ms", "behind at the end", "sender late ms"]
    return f"Broker: {result.broker}.\n\n" + markdown.table(head, rows)
