"""Load of the console: pages and live streams while turns are being written."""

import os
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Final

from msgspec import Struct

from benchmarks import markdown
from benchmarks.errors import Unavailable
from benchmarks.options import Options
from benchmarks.rounds import median, ratio
from benchmarks.web_load import cpu_use, installation, visits
from benchmarks.web_load.installation import LIVE, Installation
from benchmarks.web_load.scored_turns import Flow
from benchmarks.web_load.visitors import SETTLE, Arrival, Job, Request

NAME: Final = "web"
TITLE: Final = "Load of the console"
PROCESSES: Final = (1, 3)
RATES: Final = (0, 250, 500, 1000)
"""Turns per second that are written meanwhile."""
SECONDS: Final = 12.0
STREAMS: Final = 50
THINK: Final = 8.0
"""Seconds between two clicks of a person, on average."""
FRAGMENTS: Final = 10.0
"""Requests per second of pages that update themselves."""
AIM: Final = 300.0
"""Milliseconds, of the 99th percentile."""
ENOUGH: Final = 100
"""Requests that a 99th percentile needs."""
PREPARATION: Final = 0.001
"""Seconds allowed for preparing a turn that will be written."""


class Spread(Struct, frozen=True):
    """Milliseconds; ``count``: of values."""

    count: int
    p50: float
    p95: float
    p99: float
    worst: float


class Measured(Struct):
    """One measurement; CPU in seconds per second, memory in MiB.

    ``wanted``, ``written``: turns/s. ``behind``: seconds that the last batch was late. ``errors``:
    answers other than success, ``failed`` none at all. ``delay``: of a turn's score from its commit
    to the stream. ``machine``: CPU of everything that ran, also of other people's processes.
    """

    processes: int
    wanted: int
    written: float
    behind: float
    all: Spread
    kinds: dict[str, list[float]]
    errors: dict[str, int]
    delay: Spread
    events: float
    resyncs: int
    streams_opened: int
    streams_broken: int
    sender_late: float
    cpu: dict[str, float]
    memory: list[float]
    load: float


class Result(Struct):
    """Rounds in order; times of ``Measured.kinds`` in milliseconds."""

    people: int
    streams: int
    sessions: int
    think: float
    seconds: float
    measured: list[Measured]


def measure(options: Options) -> Result:
    """Every number of processes, with every rate of turns.

    Raises:
        Unavailable: PostgreSQL or HAProxy is not installed.
    """
    with installation.opened(options) as installed:
        seconds = options.size(SECONDS, 2.0)
        streams = options.size(STREAMS, 5)
        found: list[Measured] = []
        for number in range(options.rounds):
            for count in options.size(PROCESSES, (2,)):
                with installed.console(count) as port:
                    for rate in options.size(RATES, (20,)):
                        one = _measure(installed, port, count, rate, seconds, streams, number)
                        found.append(one)
                        options.say(_said(one))
        return Result(len(installed.visitors), streams, installed.sessions, THINK, seconds, found)


def _measure(
    installed: Installation,
    port: int,
    count: int,
    rate: int,
    seconds: float,
    streams: int,
    number: int,
) -> Measured:
    with tempfile.TemporaryDirectory(prefix="rapport-web-load-") as folder:
        log = Path(folder) / "commits"
        turns = round(rate * seconds)
        start = time.time() + SETTLE + PREPARATION * turns
        if turns:
            installed.begin_writing(
                Flow(rate, turns, installed.sessions, LIVE, log=str(log), start=start)
            )
        job = Job(
            installation.HOST,
            port,
            str(installed.certificate),
            start,
            seconds,
            visits.plan(installed.visitors, seconds, THINK, FRAGMENTS, seed=number),
            installed.streams(streams),
        )
        before = cpu_use.Sample(start)
        seen = installed.visit(job)
        used = before.used(seconds)
        written = installed.finish_writing() if turns else None
        delays = _delays(log, seen.arrivals) if turns else []
    kinds: dict[str, list[float]] = defaultdict(list)
    errors: dict[str, int] = defaultdict(int)
    for request in seen.requests:
        kinds[request.kind].append(round(request.seconds * 1000, 1))
        if request.status != 200:
            errors[f"{request.kind}: {request.status or 'no answer'}"] += 1
    return Measured(
        processes=count,
        wanted=rate,
        written=round(written.rate, 1) if written else 0.0,
        behind=round(written.late, 2) if written else 0.0,
        all=spread([each for times in kinds.values() for each in times]),
        kinds=dict(kinds),
        errors=dict(errors),
        delay=spread(delays),
        events=round(seen.events / seconds, 1),
        resyncs=seen.resyncs,
        streams_opened=seen.opened,
        streams_broken=seen.broken,
        sender_late=round(seen.late * 1000, 1),
        cpu=used,
        memory=[round(each, 1) for each in cpu_use.web_memory()],
        load=round(os.getloadavg()[0], 2),
    )


def _delays(log: Path, arrivals: list[Arrival]) -> list[float]:
    """Milliseconds from commit to arrival."""
    committed: dict[tuple[str, int, str], float] = {}
    for line in log.read_text("utf-8").splitlines():
        session, seq, stage, at = line.split()
        committed[session, int(seq), stage] = float(at)
    found = [
        (one.at - committed[one.session, one.seq, one.stage]) * 1000
        for one in arrivals
        if (one.session, one.seq, one.stage) in committed
    ]
    return [round(each, 1) for each in found]


def spread(values: list[float]) -> Spread:
    """Percentiles; zeros without values.

    >>> spread([4.0, 1.0, 3.0, 2.0])
    Spread(count=4, p50=3.0, p95=4.0, p99=4.0, worst=4.0)
    """
    if not values:
        return Spread(0, 0.0, 0.0, 0.0, 0.0)
    ranked = sorted(values)
    p50, p95, p99 = (ranked[min(len(ranked) - 1, int(q * len(ranked)))] for q in (0.5, 0.95, 0.99))
    return Spread(len(ranked), p50, p95, p99, ranked[-1])


def _said(one: Measured) -> str:
    return (
        f"{one.processes} processes, {one.wanted} turns/s ({one.written:.0f} written): "
        f"p50 {one.all.p50:.0f} ms, p99 {one.all.p99:.0f} ms, {sum(one.errors.values())} errors, "
        f"stream {one.delay.p50:.0f}/{one.delay.p99:.0f} ms, cpu {one.cpu}, load {one.load}"
    )


def table(result: Result) -> str:
    """A row per measurement, then the pages, then one process against several."""
    return "TODO"
