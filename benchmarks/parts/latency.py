"""Latency from the intended sending of a turn to its commit, at shares of the sustained rate.

Each round has its own broker, database and workers, and its loads are shares of the rate that these
sustain, because the embedded broker slows down as its log grows and machine load drifts. Turns
arrive as a Poisson process from an open loop; the row ``lone`` sends occasional turns to an idle
worker.
"""

from typing import Final

from msgspec import Struct

from benchmarks import consumer_group, markdown, schedule, testbed, workload
from benchmarks.consumer_group import Flow
from benchmarks.errors import Unavailable
from benchmarks.options import Options
from benchmarks.rounds import median, spread
from benchmarks.sustained import sustained

NAME: Final = "latency"
TITLE: Final = "Latency"
SHARES: Final = (0.1, 0.5, 0.8, 0.95)
LONE_RATE: Final = 4.0


class Load(Struct):
    """``share`` of the sustained rate; 0: lone turns."""

    share: float
    rounds: list[Flow]


class Deployment(Struct):
    """Turns per second by round: in ``bursts``, and ``sustained`` as a flow."""

    database: str
    workers: int
    bursts: list[float]
    sustained: list[float]
    loads: list[Load]


class Result(Struct):
    """One entry per kind of deployment."""

    broker: str
    deployments: list[Deployment]


def measure(options: Options) -> Result:
    """Measure one worker on SQLite, then a worker per core on PostgreSQL."""
    plan = [("sqlite", 1)] if options.quick else [("sqlite", 1), ("postgresql", options.cores)]
    found = [
        Deployment(database, workers, [], [], [Load(share, []) for share in (0.0, *SHARES)])
        for database, workers in plan
    ]
    broker = ""
    for number in range(options.rounds):
        for deployment in found:
            try:
                broker = _round(options, deployment, number)
            except Unavailable as problem:
                options.say(str(problem))
    return Result(broker, [deployment for deployment in found if deployment.sustained])


def _round(options: Options, deployment: Deployment, number: int) -> str:
    """Run all loads once; return the kind of broker."""
    burst = workload.turns(options.size(2000, 120) * deployment.workers)
    seconds = options.size(10.0, 1.5)
    with (
        testbed.opened(options.bundle, options.kafka) as bed,
        consumer_group.workers(
            bed.deployment(deployment.database), deployment.workers
        ) as consumers,
    ):
        deployment.bursts.append(consumers.burst("burst", burst).rate)
        limit = sustained(consumers, deployment.bursts[-1], seconds, seed=number)
        deployment.sustained.append(limit)
        options.say(
            f"round {number + 1}: {deployment.database} x{deployment.workers}: "
            f"{deployment.bursts[-1]:.1f} turns/s in a burst, {limit:.1f} sustained"
        )
        for place, load in enumerate(deployment.loads):
            at = (
                schedule.arrivals(load.share * limit, seconds, seed=number)
                if load.share
                else schedule.even(LONE_RATE, seconds)
            )
            if not at:
                continue
            flow = consumers.flow(f"load{place}", workload.turns(len(at)), at)
            load.rounds.append(flow)
            options.say(f"round {number + 1}: {load.share:.0%}: {flow.latency.p50:.1f} ms")
        return bed.broker_name


def table(result: Result) -> str:
    """One row per load, medians of the rounds' percentiles."""
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
                    f"{median([flow.rate for flow in flows]):.1f}",
                    *(
                        f"{median([getattr(flow.latency, name) for flow in flows]):.0f}"
                        for name in ("p50", "p95", "p99")
                    ),
                    f"{median([flow.backlog[-1] for flow in flows]):.0f}",
                    f"{median([flow.sender_late for flow in flows]):.1f}",
                ]
            )
    limits = [
        [
            f"{deployment.database} x{deployment.workers}",
            *(
                cell
                for rates in (deployment.bursts, deployment.sustained)
                for cell in (f"{median(rates):.0f}", spread(rates))
            ),
        ]
        for deployment in result.deployments
    ]
    head = [
        "load",
        "turns/s",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "backlog at the end",
        "sender delay ms",
    ]
    of_limits = ["workers", "in bursts, turns/s", "rounds", "sustained, turns/s", "rounds"]
    return (
        f"Broker: {result.broker}.\n\n"
        f"{markdown.table(of_limits, limits)}\n\n{markdown.table(head, rows)}"
    )
