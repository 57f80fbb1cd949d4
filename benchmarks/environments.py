"""The other Python environments: one with torch, one for the alternative stream engine."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.errors import Unavailable
from benchmarks.load.processes import REPOSITORY

TRAIN: Final = REPOSITORY / ".venv-train" / "bin" / "python"
PEER_REQUIREMENTS: Final = Path(__file__).with_name("requirements-peer.txt")
PEER: Final = REPOSITORY / "build" / "benchmarks" / "peer"


def train() -> Path:
    """The interpreter of the training environment.

    Raises:
        Unavailable: the environment does not exist.
    """
    if not TRAIN.exists():
        raise Unavailable("needs the training environment: make train-env")
    return TRAIN


def peer() -> Path:
    """The interpreter of the other engine's environment, created at first use from the pinned list.

    Raises:
        Unavailable: it cannot be installed here.
    """
    python = PEER / "bin" / "python"
    complete = PEER / ".installed"
    if complete.exists() and complete.read_bytes() == PEER_REQUIREMENTS.read_bytes():
        return python
    for command in (
        [sys.executable, "-m", "venv", "--clear", PEER],
        [python, "-m", "pip", "install", "-q", "-r", PEER_REQUIREMENTS],
    ):
        done = subprocess.run(  # noqa: S603  # no shell
            [str(part) for part in command], capture_output=True, text=True, check=False
        )
        if done.returncode:
            reason = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
            raise Unavailable(f"{PEER_REQUIREMENTS.name} cannot be installed: {reason[0]}")
    complete.write_bytes(PEER_REQUIREMENTS.read_bytes())
    return python
