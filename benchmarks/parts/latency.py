"""Latency from the intended sending of a turn to its commit, at shares of the sustained rate.

Each round has its own servers, and its loads are shares of the rate that was sustained in it,
because machine load drifts. A service's workers are measured on Apache Kafka and PostgreSQL. With
the embedded broker every load has a new one, and a new worker (``testbed``). Turns arrive as a
Poisson process from an open loop; the row ``lone`` sends occasional turns to an idle worker.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from benchmarks.errors import Unavailable
from benchmarks.load import consumer_group, schedule, testbed, workload
from benchmarks.load.consumer_group import Flow, Group
from benchmarks.load.rounds import median, spread
from benchmarks.load.sustained import Run, sustained
from benchmarks.load.workload import Turn
from benchmarks.options import Options
from benchmarks.report import markdown

NAME: Final = "latency"
TITLE: Final = "Latency"
SHARES: Final = (0.1, 0.5, 0.8, 0.95)
LONE_RATE: Final = 4.0
EMBEDDED: Final = "embedded"
KAFKA: Final = "Kafka"


class Load(Struct):
    """``share`` of the sustained rate; 0: lone turns."""

    share: float
    rounds: list[Flow]


class Deployment(Struct):
    """Turns per second by round: in ``bursts``, and ``sustained`` as a flow."""

    broker: str
    database: str
    workers: int
    bursts: list[float]
    sustained: list[float]
    loads: list[Load]

    @property
    def name(self) -> str:
        """As the tables call it."""
        return f"{self.broker}, {self.database} x{self.workers}"


class Result(Struct):
    """One entry per kind of deployment."""

    deployments: list[Deployment]


def measure(options: Options) -> Result:
    """Measure a laptop's worker, a service's worker, and a service's workers, one per core."""
    plan = [(KAFKA if options.kafka else EMBEDDED, "sqlite", 1)]
    if not options.quick:
        plan += [(KAFKA, "postgresql", count) for count in sorted({1, options.cores})]
    found = [
        Deployment(*kind, [], [], [Load(share, []) for share in (0.0, *SHARES)]) for kind in plan
    ]
    for number in range(options.rounds):
        for deployment in found:
            try:
                _round(options, deployment, number)
            except Unavailable as problem:
                options.say(str(problem))
    return Result([deployment for deployment in found if deployment.sustained])


def _round(options: Options, deployment: Deployment, number: int) -> None:
    """Run all loads once."""
    with testbed.opened(options.bundle, deployment.broker == KAFKA) as bed:

        @contextmanager
        def consumers() -> Iterator[Group]:
            settings = bed.deployment(deployment.database)
            with consumer_group.workers(settings, deployment.workers) as found:
                yield found

        def run_alone(name: str, turns: list[Turn], at: list[float]) -> Flow:
            with consumers() as new:
                return new.flow(name, turns, at)

        with consumers() as first:
            burst = _burst(options, deployment, first)
            if deployment.broker == KAFKA:
                _loads(options, deployment, burst, first.flow, number)
                return
        _loads(options, deployment, burst, run_alone, number)


def _burst(options: Options, deployment: Deployment, consumers: Group) -> float:
    turns = workload.turns(options.size(2000, 120) * deployment.workers)
    return consumers.burst("burst", turns).rate


def _loads(options: Options, deployment: Deployment, burst: float, run: Run, number: int) -> None:
    seconds = options.size(10.0, 1.5)
    limit = sustained(run, burst, seconds, seed=number)
    deployment.bursts.append(burst)
    deployment.sustained.append(limit)
    options.say(
        f"round {number + 1}: {deployment.name}: {burst:.1f} turns/s in a burst, "
        f"{limit:.1f} sustained"
    )
    for place, load in enumerate(deployment.loads):
        at = (
            schedule.arrivals(load.share * limit, seconds, seed=number)
            if load.share
            else schedule.even(LONE_RATE, seconds)
        )
        if not at:
            continue
        flow = run(f"load{place}", workload.turns(len(at)), at)
        load.rounds.append(flow)
        options.say(f"round {number + 1}: {load.share:.0%}: {flow.latency.p50:.1f} ms")


def table(result: Result) -> str:
    """One row per load, medians of the rounds' percentiles."""
    rows = []
    for deployment in result.deployments:
        for load in deployment.loads:
            if not load.rounds:
                continue
            flows = load.rounds
            share = f"{load.share:.0%}" if load.share else "a lone turn"
            rows.append(
                [
                    f"{deployment.name}, {share}",
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
            deployment.name,
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
    of_limits = [
        "broker, database, workers",
        "in bursts, turns/s",
        "rounds",
        "sustained, turns/s",
        "rounds",
    ]
    return f"{markdown.table(of_limits, limits)}\n\n{markdown.table(head, rows)}"
