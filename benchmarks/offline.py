"""Time ``rapport score`` over a file of turns, without its start-up."""

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import processes, workload
from benchmarks.workload import Turn
from stream_app.commands.child_processes import environment
from stream_app.errors import RapportError
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
