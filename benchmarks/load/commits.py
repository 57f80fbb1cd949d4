"""Commit times: appended by the consumers, read by the benchmark.

Each consumer process appends one line per commit to its own file.
"""

import os
import time
from pathlib import Path

import msgspec
from msgspec import Struct


class Commit(Struct, frozen=True, array_like=True):
    """One commit.

    ``at``: seconds since 1970, after the commit returned. ``cpu``: the process's CPU seconds so
    far, all threads; ``model_cpu``: those spent in ONNX sessions. ``turns``: session and intended
    send time (seconds since 1970) of each turn in it.
    """

    at: float
    cpu: float
    model_cpu: float
    turns: list[tuple[str, float]]


class CommitWriter:
    """This process's file in the folder shared by all consumers of a run."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{os.getpid()}.commits"

    def write(self, turns: list[tuple[str, float]], model_cpu: float) -> None:
        """Append a commit; call right after it returned."""
        commit = Commit(time.time(), time.process_time(), model_cpu, turns)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(commit) + b"\n")


class CommitReader:
    """Tails the files of a folder; returns each line once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def new(self) -> dict[str, list[Commit]]:
        """Commits since the last call, by process."""
        found: dict[str, list[Commit]] = {}
        for path in sorted(self._folder.glob("*.commits")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole, newline, _ = file.read().rpartition(b"\n")
            self._read[path] = self._read.get(path, 0) + len(whole) + len(newline)
            found[path.stem] = [
                msgspec.json.decode(line, type=Commit) for line in whole.splitlines()
            ]
        return found
