"""Speed and memory: every method in a process of its own, the methods taking turns.

Each round gives every method the same test pairs of EPITOME, one method after the other, so that
drifts in machine load cancel out. Speed is the median over the rounds of scored turns a second of
processor time, which is one second of one idle core; the seeker post is encoded as well where a
method reads it. Memory is the peak resident set of the process, with its libraries: what starting
the method costs a host.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import IO

from research.compare.entries import Entry

ROUNDS = 5
TURNS = 64


@dataclass(frozen=True)
class Cost:
    """Turns a second of processor time [rounds] and peak memory in MiB."""

    rounds: list[float]
    memory: float

    @property
    def turns_a_second(self) -> float:
        """Median over the rounds."""
        return median(self.rounds)


class Served:
    """A method in a process of its own (`research.compare.serve`); `pairs` is 0 if it failed."""

    def __init__(self, entry: Entry, data_dir: Path | None) -> None:
        command = [sys.executable, "-m", "research.compare.serve", entry.source, entry.key]
        self.process = subprocess.Popen(  # noqa: S603 (this package's own module)
            [*command, *([str(data_dir)] if data_dir else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            text=True,
        )
        assert self.process.stdin is not None  # noqa: S101 (it is a pipe)
        assert self.process.stdout is not None  # noqa: S101
        self.requests: IO[str] = self.process.stdin
        self.answers: IO[str] = self.process.stdout
        self.pairs = 0

    def wait(self) -> bool:
        """Wait until the method is loaded; False if it failed."""
        self.pairs = int(self.answers.readline() or 0)
        return self.pairs > 0

    def score(self, start: int, stop: int) -> tuple[float, float]:
        """Turns a second and memory in MiB of one slice."""
        self.requests.write(f"{start} {stop}\n")
        self.requests.flush()
        speed, memory = json.loads(self.answers.readline())
        return speed, memory

    def close(self) -> None:
        """End the process."""
        self.requests.close()
        self.process.wait()
        self.answers.close()


def measure(
    chosen: Sequence[Entry], data_dir: Path | None, rounds: int = ROUNDS, turns: int = TURNS
) -> dict[str, Cost]:
    """Cost by method; a method that fails to load is left out, with a message."""
    loading = {each.key: Served(each, data_dir) for each in chosen if each.scored}
    served: dict[str, Served] = {}
    for key, each in loading.items():
        if each.wait():
            served[key] = each
            turns = min(turns, each.pairs // rounds)
            print(f"{key}: loaded", flush=True)
        else:
            each.close()
            print(f"{key}: could not be loaded; its cost is not measured", flush=True)
    found: dict[str, list[tuple[float, float]]] = {key: [] for key in served}
    for number in range(rounds):
        for key, each in served.items():
            found[key].append(each.score(number * turns, (number + 1) * turns))
    for each in served.values():
        each.close()
    return {
        key: Cost([speed for speed, _ in each], max(memory for _, memory in each))
        for key, each in found.items()
    }
