"""Compare Rapport with the bare ONNX sessions and with alternatives, in one run."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from msgspec import Struct

from benchmarks import environments, offline, onnx_only
from benchmarks.load import consumer_group, testbed, workload
from benchmarks.load.rounds import median, ratio, spread
from benchmarks.load.testbed import Testbed
from benchmarks.load.workload import Turn
from benchmarks.options import Options
from benchmarks.report import markdown
from stream_app.errors import RapportError

NAME: Final = "alternatives"
TITLE: Final = "Comparison with alternatives"


class Sample(Struct, frozen=True):
    """One round of one line; ``overhead``: µs of CPU per turn outside the model, if known."""

    rate: float
    overhead: float | None = None


class Line(Struct):
    """All rounds of one line, turns per second."""

    name: str
    what: str
    processes: int
    turns: int
    rates: list[float] = []
    overheads: list[float] = []
    missing: str = ""


class Ratio(Struct, frozen=True):
    """A ratio and its target; 0: no target."""

    over: str
    under: str
    reach: float


class Result(Struct):
    """``tokens``: mean number per turn."""

    tokens: float
    lines: list[Line]
    ratios: list[Ratio]


Measure = Callable[[], Sample]


def measure(options: Options) -> Result:
    """Measure all lines in turn, round by round."""
    many = options.cores
    turns = workload.turns(options.size(4000, 240))
    few = workload.turns(options.size(600, 40))
    fewest = workload.turns(options.size(96, 8))
    with ExitStack() as stack:
        bed = stack.enter_context(testbed.opened(options.bundle, options.kafka))
        plain = [sys.executable, "-m", "benchmarks.consumers.plain"]
        measured: list[tuple[Line, Measure]] = [
            (
                Line("bare", "ONNX sessions alone, inputs ready", 1, len(turns)),
                _bare(stack, options.bundle, turns, 1),
            ),
            (
                Line(f"bare x{many}", "the same, one process per core", many, len(turns)),
                _bare(stack, options.bundle, turns, many),
            ),
            *(
                (
                    Line(f"ours, {title}{suffix}", what, count, len(turns)),
                    _ours(bed, database, count, turns),
                )
                for count, suffix, what in (
                    (1, "", "one worker"),
                    (many, f" x{many}", "a worker a core"),
                )
                for database, title in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
            ),
            (
                Line("ours, offline", "`rapport score`, without start-up", 1, len(turns)),
                lambda: _offline(bed, turns),
            ),
            (
                Line("plain", "the same bundle in a loop around aiokafka", 1, len(turns)),
                lambda: _consumer(bed, [*plain, "once"], turns),
            ),
            (
                Line("concat", "the same encoder, seven turns joined", 1, len(few)),
                lambda: _consumer(bed, [*plain, "window"], few),
            ),
            *(
                (
                    Line(f"user's choice, {size}", what, 1, len(fewest)),
                    _hugging_face(bed, size, fewest),
                )
                for size, what in (
                    (1, "Hugging Face pipeline, base size, seven turns joined, batch 1"),
                    (32, "the same, batch 32"),
                )
            ),
            (
                Line("ours, Kafka", "one worker, SQLite, Apache Kafka", 1, len(turns)),
                lambda: _on_kafka(options, lambda other: _ours(other, "sqlite", 1, turns)()),
            ),
            (
                Line("peer, Kafka", "Quix Streams, the same bundle, SQLite", 1, len(turns)),
                lambda: _on_kafka(options, lambda other: _peer(other, turns)),
            ),
        ]
        for number in range(options.rounds):
            for line, run in measured:
                _round(options, number, line, run)
    return Result(
        tokens=sum(turn.tokens for turn in turns) / len(turns),
        lines=[line for line, _ in measured],
        ratios=[
            Ratio("ours, SQLite", "bare", 0.9),
            Ratio("ours, PostgreSQL", "bare", 0.9),
            Ratio(f"ours, SQLite x{many}", f"bare x{many}", 0.9),
            Ratio(f"ours, PostgreSQL x{many}", f"bare x{many}", 0.9),
            Ratio("ours, offline", "bare", 0.0),
            Ratio("ours, SQLite", "plain", 0.0),
            Ratio("ours, SQLite", "concat", 4.0),
            Ratio("ours, SQLite", "user's choice, 1", 30.0),
            Ratio("ours, SQLite", "user's choice, 32", 30.0),
            Ratio("ours, Kafka", "peer, Kafka", 0.0),
        ],
    )


def _round(options: Options, number: int, line: Line, run: Measure) -> None:
    if line.missing:
        return
    try:
        sample = run()
    except (RapportError, subprocess.SubprocessError) as problem:
        line.missing = str(problem).partition("\n")[0]  # keep the other lines' results
        line.rates.clear()
        line.overheads.clear()
        options.say(f"{line.name}: {problem}")
        return
    line.rates.append(sample.rate)
    if sample.overhead is not None:
        line.overheads.append(sample.overhead)
    options.say(f"round {number + 1}: {line.name}: {sample.rate:.1f} turns/s")


def _bare(stack: ExitStack, bundle: Path, turns: list[Turn], count: int) -> Measure:
    processes = stack.enter_context(onnx_only.model_processes(bundle, turns, count))
    return lambda: Sample(processes.rate())


def _ours(bed: Testbed, database: str, count: int, turns: list[Turn]) -> Measure:
    def run() -> Sample:
        with consumer_group.workers(bed.deployment(database), count) as workers:
            burst = workers.burst("run", turns)
        return Sample(burst.rate, burst.overhead)

    return run


def _consumer(bed: Testbed, command: Sequence[str | Path], turns: list[Turn]) -> Sample:
    with consumer_group.running(bed.topics(), [command]) as consumer:
        burst = consumer.burst("run", turns)
    return Sample(burst.rate, burst.overhead)


def _hugging_face(bed: Testbed, batch: int, turns: list[Turn]) -> Measure:
    def run() -> Sample:
        command: list[str | Path] = [
            environments.train(),
            "-m",
            "benchmarks.consumers.hugging_face",
            str(batch),
        ]
        with consumer_group.running(bed.topics(), [command], warm_turns=batch) as consumer:
            return Sample(consumer.burst("run", turns).rate)

    return run


def _peer(bed: Testbed, turns: list[Turn]) -> Sample:
    return _consumer(bed, [environments.peer(), "-m", "benchmarks.consumers.quix"], turns)


def _on_kafka(options: Options, run: Callable[[Testbed], Sample]) -> Sample:
    with testbed.opened(options.bundle, on_kafka=True) as bed:
        return run(bed)


def _offline(bed: Testbed, turns: list[Turn]) -> Sample:
    with offline.on({min(os.sched_getaffinity(0))}):
        return Sample(offline.rate(bed.topics(), bed.folder, turns))


def table(result: Result) -> str:
    """Ratios first, because machines are noisy."""
    by_name = {line.name: line for line in result.lines}
    ratios = []
    for item in result.ratios:
        over, under = by_name[item.over], by_name[item.under]
        known = over.rates and len(over.rates) == len(under.rates)
        shown = f"{ratio(over.rates, under.rates):.2f}" if known else "not measured"
        ratios.append(
            [f"{item.over} / {item.under}", shown, f"{item.reach:g}" if item.reach else ""]
        )
    lines = [
        [
            line.name,
            line.what if not line.missing else f"{line.what}: {line.missing}",
            f"{median(line.rates):.1f}" if line.rates else "not measured",
            spread(line.rates) if line.rates else "",
            f"{median(line.overheads):.0f}" if line.overheads else "",
            str(line.turns),
        ]
        for line in result.lines
    ]
    head = ["line", "what", "turns/s", "rounds", "µs of CPU a turn, not the model", "turns"]
    return (
        f"{result.tokens:.1f} tokens a turn.\n\n"
        + markdown.table(["ratio", "median of rounds", "wanted"], ratios)
        + "\n\n"
        + markdown.table(head, lines)
    )
