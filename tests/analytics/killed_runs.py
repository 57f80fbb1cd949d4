"""Kills `archive` before each of its steps: `python -m tests.analytics.killed_runs FOLDER`.

Every run works on its own copy of FOLDER/source (a database with its keys), in FOLDER/0, FOLDER/1
and so on, and kills itself by SIGKILL. The last folder is of a run that was not killed.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from sqlalchemy import Engine, event

from stream_app.analytics.archive import archive
from stream_app.store.lifecycle import archived
from stream_app.store.stream.repository import open_store
from tests.analytics import archiving

DATABASE = "rapport.db"


class Steps:
    """Counts steps and kills the process before one of them."""

    def __init__(self, last: int) -> None:
        self._left = last

    def take(self, *_: Any) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    def before(self, owner: Any, name: str) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        def stepped(*given: Any, **named: Any) -> Any:
            self.take()
            return inner(*given, **named)

        setattr(owner, name, stepped)


def run(folder: Path, last: int) -> None:
    """Archive, killed before step number ``last``."""
    steps = Steps(last)
    steps.before(archived, "add")
    steps.before(archived, "delete_moved")
    steps.before(archive, "_sync")
    steps.before(Path, "rename")
    steps.before(pq.ParquetWriter, "write_batch")
    store = open_store(f"sqlite:///{folder / DATABASE}")
    event.listen(Engine, "commit", steps.take)
    archiving.move(store, folder / "archive")
    steps.take()  # after the last commit


def main(folder: Path) -> None:
    """All runs, until one is not killed; forked, because importing takes a second."""
    for step in range(999):
        copy = folder / str(step)
        shutil.copytree(folder / "source", copy)
        child = os.fork()
        if not child:
            run(copy, step)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            sys.exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
