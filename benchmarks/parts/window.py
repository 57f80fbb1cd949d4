"""Cost by length of the window: encoded once, and re-encoded as concatenated text."""

import shutil
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from benchmarks.load import consumer_group, testbed, workload
from benchmarks.load.rounds import median, ratio
from benchmarks.options import Options
from benchmarks.report import markdown
from stream_app.inference.bundles.bundle import MANIFEST

NAME: Final = "window"
TITLE: Final = "Window length"
LENGTHS: Final = (0, 2, 4, 6, 8, 12)
LONGEST: Final = max(LENGTHS)


class Point(Struct):
    """Turns per second by round; ``length``: turns around the scored one.

    ``cpu``: µs of CPU per turn of a worker, model included; more reliable than turns per second
    when others share the machine.
    """

    length: int
    ours: list[float]
    cpu: list[float]
    concatenated: list[float]


class Result(Struct):
    """One worker, SQLite."""

    points: list[Point]


def measure(options: Options) -> Result:
    """Run real workers with a bundle whose manifest allows that many neighbours, as its graph does.

    Every round begins with another length, so that a drift within a round affects all of them.
    """
    lengths = options.size(LENGTHS, (0, LONGEST))
    points = [Point(length, [], [], []) for length in lengths]
    turns = workload.turns(options.size(2000, 120))
    few = workload.turns(options.size(400, 24))
    with testbed.opened(options.bundle, options.kafka) as bed:
        bundles = {
            point.length: widened(options.bundle, bed.folder / f"bundle-{point.length}", point)
            for point in points
        }
        for number in range(options.rounds):
            first = number % len(points)
            for point in points[first:] + points[:first]:
                changes: dict[str, Any] = {"bundle": bundles[point.length]}
                with consumer_group.workers(bed.deployment(**changes)) as workers:
                    burst = workers.burst("run", turns)
                plain = [sys.executable, "-m", "benchmarks.consumers.plain", "window"]
                with consumer_group.running(bed.topics(**changes), [plain]) as consumer:
                    point.concatenated.append(consumer.burst("run", few).rate)
                point.ours.append(burst.rate)
                point.cpu.append(burst.cpu / burst.turns * 1e6)
                options.say(f"round {number + 1}: window {point.length}: {burst.rate:.1f} turns/s")
    return Result(points)


def widened(bundle: Path, folder: Path, point: Point) -> Path:
    """Copy the bundle; its manifest gets the point's window and slots for the longest one."""
    shutil.copytree(bundle, folder)
    manifest = msgspec.json.decode((folder / MANIFEST).read_bytes())
    after = point.length // 2
    manifest["window"] = {"before": point.length - after, "after": after}
    manifest["head"]["slots"] = LONGEST
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return folder


def table(result: Result) -> str:
    """Relative to an empty window."""
    base = result.points[0]
    rows = [
        [
            str(point.length),
            f"{median(point.ours):.1f}",
            f"{ratio(base.ours, point.ours):.2f}",
            f"{median(point.cpu):.0f}",
            f"{ratio(point.cpu, base.cpu):.2f}",
            f"{median(point.concatenated):.1f}",
            f"{ratio(base.concatenated, point.concatenated):.2f}",
        ]
        for point in result.points
    ]
    head = [
        "turns around",
        "ours, turns/s",
        "cost of a turn, 0 = 1",
        "µs of CPU a turn",
        "0 = 1",
        "concatenated, turns/s",
        "cost of a turn, 0 = 1",
    ]
    return markdown.table(head, rows)
