"""Time ``rapport score`` over a file of turns, without its start-up.

``python -m benchmarks.offline`` compares all cores with one core, which takes a minute.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.load import processes, workload
from benchmarks.load.workload import Turn
from stream_app.errors import RapportError
from stream_app.processes.child_processes import environment
from stream_app.settings import Settings


def rate(settings: Settings, folder: Path, turns: list[Turn]) -> float:
    """Turns per second, from the time for all turns minus that for the first one alone.

    Raises:
        RapportError: too few turns for a measurable difference.
    """
    start_up = _seconds(settings, folder, turns[:1])
    whole = _seconds(settings, folder, turns)
    if whole <= start_up:
        raise RapportError(f"{len(turns)} turns are too few to time `rapport score`")
    return (len(turns) - 1) / (whole - start_up)


def _seconds(settings: Settings, folder: Path, turns: list[Turn]) -> float:
    source, out = folder / "turns.jsonl", folder / "scores.jsonl"
    now = time.time()
    source.write_bytes(b"".join(workload.event(turn, "run", now) + b"\n" for turn in turns))
    command = [sys.executable, "-m", "stream_app.cli", "score", str(source), "-o", str(out)]
    start = time.perf_counter()
    subprocess.run(  # noqa: S603  # no shell
        command,
        cwd=processes.REPOSITORY,
        env={**os.environ, **environment(settings)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - start


@contextmanager
def on(cores: set[int]) -> Iterator[None]:
    """Let this process, and those that it starts, use only these cores."""
    usual = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, usual)


def main(
    turns: Annotated[int, typer.Option(min=500, help="Number of turns.")] = 3000,
    rounds: Annotated[int, typer.Option(min=1, help="Each round measures both.")] = 3,
) -> None:
    """Print turns per second on one core and on all, and the ratio."""
    usable = os.sched_getaffinity(0)
    sent, ratios = workload.turns(turns), []
    for _ in range(rounds):
        found = []
        for cores in ({min(usable)}, usable):
            with tempfile.TemporaryDirectory() as folder, on(cores):
                found.append(rate(Settings(), Path(folder), sent))
        ratios.append(found[1] / found[0])
        print(f"1 core {found[0]:.0f}, {len(usable)} cores {found[1]:.0f} turns/s")
    print(f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")


if __name__ == "__main__":
    typer.run(main)
