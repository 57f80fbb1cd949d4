"""Time and CPU from starting ``rapport worker`` and ``rapport web`` until ``/readyz`` succeeds."""

import sys
import time
from typing import Final

import psutil
from msgspec import Struct, field

from benchmarks.load import processes, testbed
from benchmarks.load.rounds import median
from benchmarks.options import Options
from benchmarks.report import markdown, probes
from stream_app.processes.child_processes import environment
from stream_app.settings import Settings
from stream_app.worker.kafka.broker import free_port

NAME: Final = "startup"
TITLE: Final = "Start-up"
PATIENCE: Final = 120.0


class Result(Struct):
    """Seconds by round. ``listening``: until the worker's health endpoints answer.

    ``cpu``, ``web_cpu``: CPU seconds of the worker and of the console until they are ready.
    """

    broker: str
    listening: list[float]
    ready: list[float]
    cpu: list[float] = field(default_factory=list)
    web_ready: list[float] = field(default_factory=list)
    web_cpu: list[float] = field(default_factory=list)


def measure(options: Options) -> Result:
    """Start the first worker of a new group, and a console, in every round."""
    with testbed.opened(options.bundle, options.kafka) as bed:
        found = Result(bed.broker_name, [], [])
        for _ in range(options.rounds):
            settings = bed.deployment(health_port=free_port(), web_port=0)
            listening, ready, cpu = _start("worker", settings, bed)
            found.listening.append(listening)
            found.ready.append(ready)
            found.cpu.append(cpu)
            _, web_ready, web_cpu = _start("web", settings, bed)
            found.web_ready.append(web_ready)
            found.web_cpu.append(web_cpu)
            options.say(
                f"worker: listening after {listening:.2f} s, ready after {ready:.2f} s and "
                f"{cpu:.2f} CPU s; console: {web_ready:.2f} s and {web_cpu:.2f} CPU s"
            )
    return found


def _start(command: str, settings: Settings, bed: testbed.Testbed) -> tuple[float, float, float]:
    """Seconds until it listens and until it is ready, and its CPU seconds until then."""
    port = settings.health_port or 0
    program = [sys.executable, "-m", "stream_app.cli", command]
    start = time.monotonic()
    log = bed.folder / "startup.log"
    with processes.running(program, log, environment(settings)) as process:
        probes.await_listening(port, PATIENCE)
        listening = time.monotonic() - start
        probes.await_ready(port, PATIENCE)
        used = psutil.Process(process.pid).cpu_times()
        return listening, time.monotonic() - start, used.user + used.system


def table(result: Result) -> str:
    """The moments of the worker, and the console's."""
    rows = [
        [what, f"{median(values):.2f}", f"{min(values):.2f}-{max(values):.2f}", _median(cpu)]
        for what, values, cpu in (
            ("worker: model loaded, health endpoints answer", result.listening, []),
            (
                "worker: ready, in the group, partitions assigned, store reachable",
                result.ready,
                result.cpu,
            ),
            ("console: ready", result.web_ready, result.web_cpu),
        )
        if values
    ]
    return f"Broker: {result.broker}.\n\n" + markdown.table(["until", "s", "rounds", "CPU s"], rows)


def _median(values: list[float]) -> str:
    return f"{median(values):.2f}" if values else ""
