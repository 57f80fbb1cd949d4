"""Load of the console: pages and live streams while turns are being written."""

import itertools
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from benchmarks.load.rounds import median, ratio
from benchmarks.options import Options
from benchmarks.report import markdown
from benchmarks.web_load import cpu_use, installation, page_costs, visits
from benchmarks.web_load.installation import LIVE, Installation
from benchmarks.web_load.scored_turns import Flow
from benchmarks.web_load.visitors import Arrival, Job

NAME: Final = "web"
TITLE: Final = "Load of the console"
PROCESSES: Final = (1, 3)
RATES: Final = (0, 500, 1000)
"""Turns per second that are written meanwhile."""
SECONDS: Final = 35.0
FIRST_SECONDS: Final = 12.0
"""Seconds that the first measurement of new processes takes."""
STREAMS: Final = 50
THINK: Final = 15.0
"""Seconds between two clicks of a person, on average."""
FRAGMENTS: Final = 5.0
"""Requests per second of pages that update themselves."""
AIM: Final = 300.0
"""Milliseconds, of the 99th percentile."""
ENOUGH: Final = 100
"""Requests that a 99th percentile needs."""


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
    to the stream. ``cpu["machine"]``: everything that ran, also what does not belong to this.
    ``kinds``: by page, the times in milliseconds.
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
    """Rounds in order.

    ``costs``: by page, milliseconds of CPU of web process and of database, kB of the answer.
    ``first``: what new processes are visited with before the measurements, without turns.
    """

    people: int
    streams: int
    sessions: int
    think: float
    seconds: float
    measured: list[Measured]
    costs: dict[str, tuple[float, float, float]]
    first: list[Measured] = []


def measure(options: Options) -> Result:
    """Every number of processes, with every rate of turns.

    Raises:
        Unavailable: PostgreSQL or HAProxy is not installed.
    """
    with installation.opened(options) as installed:
        seconds, first_seconds = options.size(SECONDS, 2.0), options.size(FIRST_SECONDS, 2.0)
        streams = options.size(STREAMS, 5)
        found: list[Measured] = []
        first: list[Measured] = []
        costs = _measure_costs(installed, options)
        for number in range(options.rounds):
            for count in options.size(PROCESSES, (2,)):
                with installed.console(count) as port:
                    # New processes compile statements and connect, and caches are empty.
                    first.append(
                        _measure(installed, port, count, 0, first_seconds, streams, number)
                    )
                    for rate in options.size(RATES, (20,)):
                        one = _measure(installed, port, count, rate, seconds, streams, number)
                        found.append(one)
                        options.say(_said(one))
        return Result(
            len(installed.visitors),
            streams,
            installed.sessions,
            THINK,
            seconds,
            found,
            costs,
            first,
        )


def _measure_costs(
    installed: Installation, options: Options
) -> dict[str, tuple[float, float, float]]:
    with installed.console(1) as port:
        base = f"https://{installation.HOST}:{port}"
        repeated = options.size(page_costs.REPEATED, 1)
        return page_costs.measure(base, str(installed.certificate), installed.visitors, repeated)


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
        if turns:
            installed.prepare_writing(Flow(rate, turns, installed.sessions, LIVE, log=str(log)))
        samples: list[cpu_use.Sample] = []

        def begun(start: float) -> None:
            samples.append(cpu_use.Sample(start, seconds))
            if turns:
                installed.begin_writing(start)

        job = Job(
            installation.HOST,
            port,
            str(installed.certificate),
            seconds,
            visits.plan(installed.visitors, seconds, THINK, FRAGMENTS, seed=number),
            installed.streams(streams),
        )
        seen = installed.visit(job, begun)
        used = samples[0].used()
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
    """The load, the pages, CPU of each page, and one process against several."""
    shown = [
        _summary(result),
        _loads(result.measured),
        _verdict(result.measured),
        *([_first(result.first)] if result.first else []),
        _pages(result.measured),
        _costs(result.costs),
        _ratios(result.measured),
    ]
    return "\n\n".join(shown)


def _summary(result: Result) -> str:
    return (
        f"{result.people} people, each with a click every {result.think:.0f} s on average, and "
        f"{FRAGMENTS:.0f} requests/s of pages that update themselves; {result.streams} live "
        f"streams; {result.sessions:,} open sessions; PostgreSQL; HAProxy with HTTPS. "
        f"{result.seconds:.0f} s for each measurement."
    )


def _groups(measured: list[Measured]) -> list[tuple[tuple[int, int], list[Measured]]]:
    """Measurements by number of processes and rate; of each, the rounds."""
    found: dict[tuple[int, int], list[Measured]] = defaultdict(list)
    for one in measured:
        found[one.processes, one.wanted].append(one)
    return sorted(found.items())


def _loads(measured: list[Measured]) -> str:
    rows = []
    for (count, wanted), rounds in _groups(measured):
        requests = sum(one.all.count for one in rounds)
        heard = [one for one in rounds if one.delay.count]
        rows.append(
            [
                str(count),
                str(wanted),
                _of(rounds, lambda one: one.written),
                str(requests),
                str(sum(sum(one.errors.values()) for one in rounds)),
                _of(rounds, lambda one: one.all.p50),
                _of(rounds, lambda one: one.all.p95),
                _of(rounds, lambda one: one.all.p99),
                _of(heard, lambda one: one.delay.p50) if heard else "",
                _of(heard, lambda one: one.delay.p99) if heard else "",
                _of(rounds, lambda one: one.events),
                *(
                    f"{median([one.cpu.get(part, 0.0) for one in rounds]):.2f}"
                    for part in ("web", "writer", "database")
                ),
                f"{median([_ours(one) for one in rounds]):.2f}",
                f"{median([_others(one) for one in rounds]):.2f}",
                _of(rounds, lambda one: max(one.memory, default=0.0)),
            ]
        )
    head = [
        "web processes",
        "turns/s wanted",
        "written",
        "requests",
        "errors",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "stream p50 ms",
        "stream p99 ms",
        "events/s",
        "CPU: web",
        "writer",
        "database",
        "all of it",
        "others",
        "MiB a process",
    ]
    return markdown.table(head, rows)


def _verdict(measured: list[Measured]) -> str:
    """Up to which of the measured rates the aim is reached."""
    words = []
    for count in sorted({one.processes for one in measured}):
        of_count = [(wanted, rounds) for (n, wanted), rounds in _groups(measured) if n == count]
        p99 = [(wanted, median([one.all.p99 for one in rounds])) for wanted, rounds in of_count]
        words.append(f"{_processes(count)}: {_crossing(p99)}.")
    return f"The 99th percentile and {AIM:.0f} ms. " + " ".join(words)


def _crossing(p99: list[tuple[int, float]]) -> str:
    """Where the aim is missed, by linear interpolation between neighbouring rates.

    >>> _crossing([(0, 100.0), (200, 500.0)])
    'passed at about 100 turns/s, between 0 (100 ms) and 200 (500 ms)'
    >>> _crossing([(0, 400.0)])
    'missed without any turns (400 ms)'
    >>> _crossing([(0, 100.0), (200, 299.0)])
    'kept at all measured rates, up to 200 turns/s (299 ms)'
    """
    if p99[0][1] > AIM:
        return f"missed without any turns ({p99[0][1]:.0f} ms)"
    for (low, below), (high, above) in itertools.pairwise(p99):
        if above > AIM:
            at = low + (high - low) * (AIM - below) / (above - below)
            return (
                f"passed at about {at:.0f} turns/s, between {low} ({below:.0f} ms) "
                f"and {high} ({above:.0f} ms)"
            )
    return f"kept at all measured rates, up to {p99[-1][0]} turns/s ({p99[-1][1]:.0f} ms)"


def _first(measured: list[Measured]) -> str:
    """How long the first visitors of new processes wait."""
    said = [
        f"{_processes(count)}: p50 {_of(rounds, lambda one: one.all.p50)} ms, "
        f"p99 {_of(rounds, lambda one: one.all.p99)} ms."
        for (count, _), rounds in _groups(measured)
    ]
    return " ".join(["The first measurement of new web processes, without turns.", *said])


def _pages(measured: list[Measured]) -> str:
    """Times by kind of page: without turns and at the highest rate, with the most processes."""
    count = max(one.processes for one in measured)
    rates = sorted({one.wanted for one in measured})
    rates = [rates[0], rates[-1]] if len(rates) > 1 else rates
    kinds = sorted({kind for one in measured for kind in one.kinds})
    rows = []
    for kind in kinds:
        row = [kind]
        for rate in rates:
            times = [
                each
                for one in measured
                if (one.processes, one.wanted) == (count, rate)
                for each in one.kinds.get(kind, [])
            ]
            found = spread(times)
            last = f"{found.p99:.0f}" if found.count >= ENOUGH else f"({found.worst:.0f})"
            row += [str(found.count), f"{found.p50:.0f}", f"{found.p95:.0f}", last]
        rows.append(row)
    head = ["page"]
    for rate in rates:
        head += [f"requests, {rate} turns/s", "p50 ms", "p95 ms", "p99 ms"]
    return (
        f"By page, {_processes(count)}; in brackets the slowest of fewer than {ENOUGH} requests."
        "\n\n"
        f"{markdown.table(head, rows)}"
    )


def _costs(costs: dict[str, tuple[float, float, float]]) -> str:
    rows = [
        [kind, f"{web:.1f}", f"{database:.1f}", f"{size:.1f}"]
        for kind, (web, database, size) in sorted(costs.items(), key=lambda one: -one[1][0])
    ]
    head = ["page", "ms of CPU, web process", "ms of CPU, PostgreSQL", "kB"]
    return f"CPU of one request, without other load.\n\n{markdown.table(head, rows)}"


def _ratios(measured: list[Measured]) -> str:
    few, many = min(PROCESSES), max(PROCESSES)
    grouped = dict(_groups(measured))
    rows = []
    for (count, wanted), several in grouped.items():
        one = grouped.get((few, wanted))
        if count != many or one is None or few == many:
            continue
        pairs = [
            [each.all.p50 for each in several],
            [each.all.p50 for each in one],
            [each.all.p99 for each in several],
            [each.all.p99 for each in one],
            [each.cpu["web"] for each in several],
            [each.cpu["web"] for each in one],
        ]
        rows.append([str(wanted), *(f"{ratio(pairs[n], pairs[n + 1]):.2f}" for n in (0, 2, 4))])
    head = ["turns/s", "p50", "p99", "CPU of all web processes"]
    return f"{_processes(many)} / {_processes(few)}:\n\n{markdown.table(head, rows)}"


def _of(rounds: list[Measured], value: Callable[[Measured], float]) -> str:
    return f"{median([value(one) for one in rounds]):.0f}"


def _ours(one: Measured) -> float:
    return sum(used for part, used in one.cpu.items() if part != "machine")


def _others(one: Measured) -> float:
    """CPU of everything else on the machine, in cores."""
    return max(0.0, one.cpu["machine"] - _ours(one))


def _processes(count: int) -> str:
    return f"{count} process{'es' if count > 1 else ''}"
