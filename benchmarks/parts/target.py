"""Are ten thousand open sessions with a turn every ten seconds each sustained?

A worker per core on Apache Kafka and PostgreSQL, with the given bundle and with every other shipped
one. First the burst rate, then nine tenths of it and the target rate as a Poisson process; the
backlog shows whether the service keeps up. Each flow has its own broker, database and workers. The
embedded broker is not used: opening the sessions would fill its log, which slows it down.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from benchmarks.load import consumer_group, schedule, testbed
from benchmarks.load.consumer_group import Flow, Group
from benchmarks.load.rounds import median, spread
from benchmarks.options import Options
from benchmarks.report import markdown
from benchmarks.storage.open_sessions import OpenSessions
from stream_app.inference.bundles import bundle as bundles

NAME: Final = "target"
TITLE: Final = "Ten thousand live sessions"
SESSIONS: Final = 10_000
RATE: Final = 1000.0
SHORT: Final = 4


class Run(Struct):
    """``bursts``: turns per second. ``memory``: MiB of the largest worker at the end."""

    bundle: str
    bursts: list[float]
    flows: list[Flow]
    memory: float


class Result(Struct):
    """``wanted``: target in turns per second."""

    workers: int
    sessions: int
    wanted: float
    runs: list[Run]


def measure(options: Options) -> Result:
    """Measure flows of a minute each."""
    wanted = options.size(RATE, 40.0)
    sessions = options.size(SESSIONS, 50)
    runs = [
        _run(options, path, sessions, wanted) for path in (options.bundle, *options.other_bundles())
    ]
    return Result(options.cores, sessions, wanted, runs)


def _run(options: Options, path: Path, sessions: int, wanted: float) -> Run:
    name = bundles.load(path).manifest.bundle_id
    seconds = options.size(60.0, 2.0)
    bursts, flows = [], []
    with _opened(options, path, sessions) as (workers, open_now):
        for _ in range(options.rounds):
            turns = open_now.turns(options.size(4000, 60))
            bursts.append(workers.burst("open", turns, open_now.first_seq).rate)
    for rate in (0.9 * median(bursts), wanted):
        with _opened(options, path, sessions) as (workers, open_now):
            at = schedule.arrivals(rate, seconds, seed=1)
            turns = open_now.turns(len(at))
            flows.append(workers.flow("open", turns, at, open_now.first_seq))
            options.say(f"{name}, {rate:.0f} turns/s: backlog {flows[-1].backlog}")
            memory = workers.memory()
    return Run(name, bursts, flows, memory)


@contextmanager
def _opened(options: Options, path: Path, sessions: int) -> Iterator[tuple[Group, OpenSessions]]:
    """Start workers with open sessions in memory, on a broker with an otherwise empty log."""
    with testbed.opened(path, on_kafka=not options.quick) as bed:
        settings = bed.deployment("postgresql")
        open_now = OpenSessions(settings, "open", sessions)
        with consumer_group.workers(settings, options.cores) as workers:
            workers.burst("open", open_now.each_once(SHORT), open_now.first_seq)
            yield workers, open_now


def table(result: Result) -> str:
    """The sustained rate, and the backlog at the target rate."""
    sustained = [
        [
            run.bundle,
            f"{median(run.bursts):.0f}",
            spread(run.bursts),
            f"{100 * median(run.bursts) / result.wanted:.0f} %",
            f"{run.memory:.0f}",
        ]
        for run in result.runs
    ]
    flows = [
        [
            run.bundle,
            f"{flow.rate:.0f}",
            *(f"{getattr(flow.latency, name):.0f}" for name in ("p50", "p95", "p99")),
            *(str(flow.backlog[place]) for place in (4, 9)),
        ]
        for run in result.runs
        for flow in run.flows
    ]
    words = (
        f"{result.sessions:,} open sessions, {result.workers} workers, Apache Kafka, PostgreSQL; "
        f"{result.wanted:.0f} turns/s are wanted."
    )
    of_bursts = ["bundle", "in bursts, turns/s", "rounds", "of the target", "worker, MiB"]
    of_flows = ["bundle", "turns/s sent", "p50 ms", "p95 ms", "p99 ms"]
    of_flows += ["backlog half-way", "backlog at the end"]
    return f"{words}\n\n{markdown.table(of_bursts, sustained)}\n\n{markdown.table(of_flows, flows)}"
