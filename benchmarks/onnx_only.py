"""The ONNX sessions alone, in a child process that runs a round on command and reports its time.

It records the model calls of the pipeline for the given turns, in a worker's batches, with their
inputs ready; a round repeats exactly these calls.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import Struct

from benchmarks.load import processes, workload
from benchmarks.load.workload import Turn
from stream_app import bootstrap
from stream_app.core.pipeline.pipeline import Pipeline, Source, receive
from stream_app.core.session.session_state import Versioned
from stream_app.inference.devices.provider_choice import Provider
from stream_app.settings import Settings


class Order(Struct, frozen=True):
    """The turns to record, in the worker's batches, and the bundle."""

    bundle: str
    turns: list[Turn]


class Call(Struct, frozen=True):
    """One recorded run of a session, with its inputs."""

    session: Any
    outputs: Any
    feeds: Any


class Recorder:
    """Wraps a session: runs it and records its inputs."""

    def __init__(self, session: Any, calls: list[Call]) -> None:
        self._session = session
        self._calls = calls

    def run(self, outputs: Any, feeds: Any) -> Any:
        """Run the session and record the call."""
        self._calls.append(Call(self._session, outputs, feeds))
        return self._session.run(outputs, feeds)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class Timed(Struct, frozen=True):
    """Wall and CPU seconds of all calls."""

    seconds: float
    cpu: float


class ModelProcesses:
    """Processes that run the sessions concurrently, one round at a time."""

    def __init__(self, turns: int, pipes: Sequence[subprocess.Popen[bytes]]) -> None:
        self._turns = turns
        self._pipes = pipes

    def round(self) -> list[Timed]:
        """Run one round in all processes at once."""
        for process in self._pipes:
            _pipe(process.stdin).write(b"\n")
            _pipe(process.stdin).flush()
        return [
            msgspec.json.decode(_pipe(process.stdout).readline(), type=Timed)
            for process in self._pipes
        ]

    def rate(self) -> float:
        """Total turns per second of one round."""
        return sum(self._turns / timed.seconds for timed in self.round())


@contextmanager
def model_processes(bundle: Path, turns: list[Turn], count: int = 1) -> Iterator[ModelProcesses]:
    """Start ``count`` processes that have recorded the calls for these turns and wait."""
    order = msgspec.json.encode(Order(str(bundle), turns))
    with ExitStack() as stack:
        pipes = [stack.enter_context(_process()) for _ in range(count)]
        for process in pipes:
            _pipe(process.stdin).write(order + b"\n")
            _pipe(process.stdin).flush()
        for process in pipes:
            _pipe(process.stdout).readline()  # recording is done
        yield ModelProcesses(len(turns), pipes)


def recorded(
    bundle: Path,
    turns: list[Turn],
    provider: Provider = Provider.AUTO,
    batch: int | None = None,
    parts: Sequence[str] = ("encoder", "head"),
) -> list[Call]:
    """The pipeline's model calls for these turns, by default in batches of a worker's size."""
    settings = Settings().model_copy(update={"bundle": bundle, "provider": provider})
    scorer: Any = bootstrap.scorer(settings)
    calls: list[Call] = []
    for part in filter(None, (getattr(scorer, name) for name in parts)):
        part.session = Recorder(part.session, calls)
    process_all(bootstrap.pipeline(settings, scorer), turns, batch or settings.batch_max)
    return calls


def process_all(pipeline: Pipeline, turns: list[Turn], batch: int) -> None:
    """Run the pipeline over turns, without broker and store."""
    states: dict[str, Versioned] = {}
    values = [workload.event(turn, "bare", time.time()) for turn in turns]
    received = [receive(Source("bare", 0, offset), value) for offset, value in enumerate(values)]
    for start in range(0, len(received), batch):
        pipeline.process(received[start : start + batch], states)


@contextmanager
def _process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(  # no shell
        [sys.executable, "-m", "benchmarks.onnx_only"],
        cwd=processes.REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:  # created with PIPE above
        raise RuntimeError("the process has no pipes")
    return pipe


def main() -> None:
    """Record once, then run a round for each line on standard input."""
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    calls = recorded(Path(order.bundle), order.turns)
    print(flush=True)
    while sys.stdin.buffer.readline():
        wall, cpu = time.perf_counter(), time.thread_time()
        for call in calls:
            call.session.run(call.outputs, call.feeds)
        timed = Timed(time.perf_counter() - wall, time.thread_time() - cpu)
        print(msgspec.json.encode(timed).decode(), flush=True)


if __name__ == "__main__":
    main()
