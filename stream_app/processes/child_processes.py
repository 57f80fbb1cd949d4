"""Runs ``rapport`` commands as child processes that end with their parent."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType

from pydantic import SecretStr

from stream_app.settings import Settings
from stream_app.worker.kafka import broker

STOP_PATIENCE = 15.0
PREFIX = "RAPPORT_"


def child_process(
    settings: Settings,
    command: str,
    log: Path,
    more: Mapping[str, str] = MappingProxyType({}),
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """Run ``rapport COMMAND`` as a process; stop it gracefully at the end of the ``with`` block."""
    program = [sys.executable, "-m", "stream_app.cli", *command.split()]
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(PREFIX)}
    return running_process(program, log, {**inherited, **environment(settings), **more})


@contextmanager
def running_process(
    command: Sequence[str], log: Path, environment: Mapping[str, str], folder: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process with this environment; append its output to a log.

    At the end of the ``with`` block it gets SIGTERM, and SIGKILL if it does not stop in time.
    """
    with log.open("ab") as sink:
        process = subprocess.Popen(  # noqa: S603  # no shell
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            preexec_fn=broker.die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
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


def environment(settings: Settings) -> dict[str, str]:
    """Settings as environment variables of a child process."""
    values = settings.model_dump(mode="python", exclude_none=True)
    return {f"{PREFIX}{name.upper()}": _plain(value) for name, value in values.items()}


def _plain(value: object) -> str:
    match value:
        case SecretStr():
            return value.get_secret_value()
        case bool():
            return str(value).lower()
        case _:
            return str(getattr(value, "value", value))
