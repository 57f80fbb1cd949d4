"""Time from starting ``rapport worker`` until ``/readyz`` succeeds."""

import sys
import time
from typing import Final

from msgspec import Struct

from benchmarks import markdown, probes, processes, testbed
from benchmarks.options import Options
from benchmarks.rounds import median
from stream_app.commands.child_processes import environment
from stream_app.settings import Settings
from stream_app.worker.broker import free_port

NAME: Final = "startup"
TITLE: Final = "Start-up"
PATIENCE: Final = 120.0


class Result(Struct):
    """Seconds by round; ``listening``: until the health endpoints answer."""

    broker: str
    listening: list[float]
    ready: list[float]


def measure(options: Options) -> Result:
    """Start the first worker of a new group in every round."""
    with testbed.opened(options.bundle, options.kafka) as bed:
        found = Result(bed.broker_name, [], [])
        for _ in range(options.rounds):
            listening, ready = _start(bed.deployment(health_port=free_port()), bed)
            found.listening.append(listening)
            found.ready.append(ready)
            options.say(f"listening after {listening:.2f} s, ready after {ready:.2f} s")
    return found


def _start(settings: Settings, bed: testbed.Testbed) -> tuple[float, float]:
    port = settings.health_port or 0
    command = [sys.executable, "-m", "stream_app.cli", "worker"]
    start = time.monotonic()
    with processes.running(command, bed.folder / "startup.log", environment(settings)):
        probes.await_listening(port, PATIENCE)
        listening = time.monotonic() - start
        probes.await_ready(port, PATIENCE)
        return listening, time.monotonic() - start


def table(result: Result) -> str:
    """Two moments."""
    rows = [
        [what, f"{median(values):.2f}", f"{min(values):.2f}-{max(values):.2f}"]
        for what, values in (
            ("model loaded, health endpoints answer", result.listening),
            ("ready: in the group, partitions assigned, store reachable", result.ready),
        )
    ]
    return f"Broker: {result.broker}.\n\n" + markdown.table(["until", "s", "rounds"], rows)
