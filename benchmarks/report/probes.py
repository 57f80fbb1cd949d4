"""Query a worker's health endpoints and metrics over HTTP."""

import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http import HTTPStatus

from stream_app.errors import RapportError

LOOK_EVERY = 0.01


def await_listening(port: int, patience: float) -> None:
    """Wait until the health endpoints answer with any status.

    Raises:
        RapportError: they do not answer in time.
    """
    _await(port, patience, lambda status: status > 0, "did not answer")


def await_ready(port: int, patience: float) -> None:
    """Wait until ``/readyz`` succeeds.

    Raises:
        RapportError: it does not succeed in time.
    """
    _await(port, patience, lambda status: status == HTTPStatus.OK, "was not ready")


def _await(port: int, patience: float, enough: Callable[[int], bool], otherwise: str) -> None:
    give_up = time.monotonic() + patience
    while not enough(_status(port)):
        if time.monotonic() > give_up:
            raise RapportError(f"a worker {otherwise} within {patience:.0f} s")
        time.sleep(LOOK_EVERY)


def _status(port: int) -> int:
    """Status code of ``/readyz``; 0 while nothing listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as response:
            return int(response.status)
    except urllib.error.HTTPError as problem:
        return problem.code
    except OSError:
        return 0


def metric(port: int, name: str) -> float:
    """A metric, summed over its labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as response:
        lines = response.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if re.match(rf"{name}[ {{]", line))
