"""Child processes of a measurement, which end with it."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from stream_app.processes import child_processes

REPOSITORY: Final = Path(__file__).resolve().parents[2]


def running(
    command: Sequence[str | Path], log: Path, more: Mapping[str, str]
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """Start a process in the repository's root, where it finds the modules."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), **more}
    return child_processes.running_process(
        [str(part) for part in command], log, environment, REPOSITORY
    )


def tail(log: Path) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-8:])
