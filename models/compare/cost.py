"""Speed and memory: every method in a process of its own, the methods taking turns.

Each round gives every method the same test pairs of EPITOME, one method after the other, so that
drifts in machine load cancel out. Speed is the median over the rounds of scored turns a second of
processor time, which is one second of one idle core; the seeker post is encoded as well where a
method reads it. Memory is the peak resident set of the process, with its libraries: what starting
the method costs a host.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from models.compare.methods import Method

ROUNDS = 5
TURNS = 64
MIB = 1024.0


@dataclass(frozen=True)
class Cost:
    """Turns a second of processor time [rounds] and peak memory in MiB."""

    rounds: list[float]
    memory: float

    @property
    def turns_a_second(self) -> float:
        """Median over the rounds."""
        return median(self.rounds)


def _serve(pipe: Connection, key: str, data_dir: Path | None) -> None:
    """Load a method and score whatever slice of the test pairs the pipe names, until None."""
    from models.compare.methods import methods  # noqa: PLC0415
    from models.data.corpora import resolve_data_dir  # noqa: PLC0415
    from models.data.epitome import load  # noqa: PLC0415
    from models.methods.folds import parts  # noqa: PLC0415

    part = parts(list(load(resolve_data_dir(data_dir))), [0])[0]
    method = next(method for method in methods() if method.key == key)
    assert method.load is not None  # noqa: S101 (measure sends no other)
    scorer = method.load(part.train)
    dialogues = [pair.turns for pair in part.test]
    scorer.levels(dialogues[:2])
    pipe.send(len(dialogues))
    while (piece := pipe.recv()) is not None:
        some = dialogues[piece[0] : piece[1]]
        started = time.process_time()
        scorer.levels(some)
        spent = max(time.process_time() - started, 1e-6)
        pipe.send((len(some) / spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB))


def measure(
    chosen: Sequence[Method], data_dir: Path | None, rounds: int = ROUNDS, turns: int = TURNS
) -> dict[str, Cost]:
    """Cost by method; a method that fails to load is left out, with a message."""
    os.environ["OMP_NUM_THREADS"] = "1"  # the processes inherit it before they load libraries
    context = multiprocessing.get_context("spawn")
    served: dict[str, tuple[Connection, Any]] = {}
    for method in chosen:
        if method.load is None:
            continue
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(there, method.key, data_dir), daemon=True)
        process.start()
        there.close()
        try:
            size = here.recv()
        except EOFError:
            print(f"{method.key}: could not be loaded; its cost is not measured", flush=True)
            process.join()
            continue
        print(f"{method.key}: loaded", flush=True)
        turns = min(turns, size // rounds)
        served[method.key] = here, process
    found: dict[str, list[tuple[float, float]]] = {key: [] for key in served}
    for number in range(rounds):
        for key, (pipe, _) in served.items():
            pipe.send((number * turns, (number + 1) * turns))
            found[key].append(pipe.recv())
    for pipe, process in served.values():
        pipe.send(None)
        process.join()
    return {
        key: Cost([speed for speed, _ in each], max(memory for _, memory in each))
        for key, each in found.items()
    }
