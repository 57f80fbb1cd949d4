"""Child processes of a measurement, which end with it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from stream_app.worker.broker import die_with_parent

REPOSITORY: Final = Path(__file__).resolve().parents[1]
STOP_PATIENCE: Final = 20.0


@contextmanager
def running(
    command: Sequence[str | Path], log: Path, more: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in the repository's root, with more in its environment; its output goes to a log.

    It is asked to stop at the end of the ``with``, and killed when it does not.
    """
    with log.open("ab") as sink:
        process = subprocess.Popen(  # noqa: S603  # no shell
            [str(part) for part in command],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **more},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            preexec_fn=die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def tail(log: Path) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-8:])
