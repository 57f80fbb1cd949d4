"""When turns were committed, written down by whoever committed them, read by whoever measures.

Each process that consumes turns appends one line to a file of its own after every commit.
"""

import os
import time
from pathlib import Path

import msgspec
from msgspec import Struct


class Commit(Struct, frozen=True, array_like=True):
    """One commit.

    ``at``: seconds since 1970, after the commit returned. ``cpu``: CPU seconds of the process so
    far, all threads; ``model_cpu``: those that were spent in model sessions. ``turns``: session
    and intended time of sending (seconds since 1970) of each turn in it.
    """

    at: float
    cpu: float
    model_cpu: float
    turns: list[tuple[str, float]]


class CommitWriter:
    """The file of this process in a folder that all consumers of a run share."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{os.getpid()}.commits"

    def write(self, turns: list[tuple[str, float]], model_cpu: float) -> None:
        """To be called right after a commit."""
        commit = Commit(time.time(), time.process_time(), model_cpu, turns)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(commit) + b"\n")


class CommitReader:
    """Follows the files of a folder; each line is given once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def new(self) -> dict[str, list[Commit]]:
        """What came since the last call, by process."""
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
