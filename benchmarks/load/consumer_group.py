"""Consumer processes under measurement, with bursts and scheduled flows of turns."""

import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import psutil
from msgspec import Struct

from benchmarks.load import generator, processes, workload
from benchmarks.load.commits import Commit, CommitReader
from benchmarks.load.generator import Job, Sent
from benchmarks.load.schedule import Latency, backlog, latency
from benchmarks.load.workload import Turn
from stream_app.errors import RapportError
from stream_app.processes.child_processes import environment
from stream_app.settings import Settings

PATIENCE: Final = 600.0
START_PATIENCE: Final = 120.0
WARM_TURNS: Final = 48
LOOK_EVERY: Final = 0.02
STAND_IN: Final = "--stand-in"
"""Option of ``benchmarks.load.worker``."""


class Burst(Struct, frozen=True):
    """Turns produced all at once, timed from the first send to the last commit.

    ``cpu``: CPU seconds of all consumers; ``model_cpu``: those in ONNX sessions.
    """

    turns: int
    seconds: float
    cpu: float
    model_cpu: float

    @property
    def rate(self) -> float:
        """Turns per second."""
        return self.turns / self.seconds

    @property
    def overhead(self) -> float:
        """Microseconds of CPU per turn outside the ONNX sessions."""
        return (self.cpu - self.model_cpu) / self.turns * 1e6


class Flow(Struct, frozen=True):
    """Turns sent on a schedule.

    ``sender_late``: 99th percentile in milliseconds, included in the latency. ``backlog``: turns
    due but not committed at the end of each tenth of the time.
    """

    rate: float
    latency: Latency
    sender_late: float
    backlog: list[int]


class Group:
    """Processes that consume one topic and record their commits in ``folder``."""

    def __init__(
        self, settings: Settings, folder: Path, started: Sequence[subprocess.Popen[bytes]]
    ) -> None:
        self.settings = settings
        self._folder = folder
        self._started = started
        self._reader = CommitReader(folder)
        self._model_cpu: dict[str, float] = {}

    def warm(self, count: int) -> None:
        """Send turns until every process has committed some, so that all have joined the group."""
        at_work: set[str] = set()
        turns = workload.turns(count, sessions=count)
        for number in itertools.count():
            run = f"warm{number}"
            at_work |= self._await(run, self._send(run, turns), START_PATIENCE).keys()
            if len(at_work) == len(self._started):
                return

    def burst(self, run: str, turns: list[Turn], first_seq: int = 0) -> Burst:
        """Send turns without pauses and wait until all are committed."""
        cpu_before, model_before = self._cpu(), dict(self._model_cpu)
        sent = self._send(run, turns, first_seq=first_seq)
        commits = self._await(run, sent, PATIENCE)
        last = {process: found[-1] for process, found in commits.items()}
        return Burst(
            turns=sent.turns,
            seconds=max(commit.at for commit in last.values()) - sent.start,
            cpu=sum(commit.cpu - cpu_before[process] for process, commit in last.items()),
            model_cpu=sum(
                commit.model_cpu - model_before[process] for process, commit in last.items()
            ),
        )

    def flow(self, run: str, turns: list[Turn], at: list[float], first_seq: int = 0) -> Flow:
        """Send turns on a schedule and wait until all are committed."""
        sent = self._send(run, turns, at, first_seq)
        commits = self._await(run, sent, PATIENCE)
        pairs = sorted(
            (intended, commit.at)
            for found in commits.values()
            for commit in found
            for session, intended in commit.turns
            if session.startswith(f"{run}-")
        )
        intended, committed = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        return Flow(
            rate=len(at) / at[-1],
            latency=latency(intended, committed),
            sender_late=sent.late,
            backlog=backlog(intended, committed),
        )

    def memory(self) -> float:
        """Resident MiB of the largest process."""
        largest = max(psutil.Process(p.pid).memory_info().rss for p in self._started)
        return float(largest) / 2**20

    def _cpu(self) -> dict[str, float]:
        times = {p.pid: psutil.Process(p.pid).cpu_times() for p in self._started}
        return {str(pid): used.user + used.system for pid, used in times.items()}

    def _send(
        self, run: str, turns: list[Turn], at: Sequence[float] = (), first_seq: int = 0
    ) -> Sent:
        job = Job(
            self.settings.kafka_brokers,
            self.settings.turns_topic,
            self.settings.topic_partitions,
            run,
            turns,
            list(at),
            first_seq,
        )
        return generator.send(job, PATIENCE + (at[-1] if at else 0.0))

    def _await(self, run: str, sent: Sent, patience: float) -> dict[str, list[Commit]]:
        """Commits with turns of a run, by process, once all turns are committed."""
        give_up = time.monotonic() + patience
        commits: dict[str, list[Commit]] = {}
        missing = sent.turns
        while missing > 0:
            for process, found in self._reader.new().items():
                for commit in found:
                    self._model_cpu[process] = commit.model_cpu
                    count = sum(session.startswith(f"{run}-") for session, _ in commit.turns)
                    missing -= count
                    if count:
                        commits.setdefault(process, []).append(commit)
            self._check(give_up, f"{missing} of {sent.turns} turns of `{run}` are not committed")
            time.sleep(LOOK_EVERY)
        return commits

    def _check(self, give_up: float, what: str) -> None:
        ended = [process.returncode for process in self._started if process.poll() is not None]
        if ended or time.monotonic() > give_up:
            state = f"a consumer ended with status {ended[0]}" if ended else "timed out"
            raise RapportError(f"{state}: {what}\n{processes.tail(self._folder / 'log')}")


@contextmanager
def workers(settings: Settings, count: int = 1) -> Iterator[Group]:
    """Start Rapport's workers, wait until they are ready, and stop them at the end."""
    commands = [[sys.executable, "-m", "benchmarks.load.worker"]] * count
    with running(settings, commands) as group:
        yield group


@contextmanager
def stand_in_workers(settings: Settings, count: int = 1) -> Iterator[Group]:
    """As ``workers``, with the ONNX sessions of ``benchmarks.load.stand_in_sessions``."""
    commands = [[sys.executable, "-m", "benchmarks.load.worker", STAND_IN]] * count
    with running(settings, commands) as group:
        yield group


@contextmanager
def running(
    settings: Settings, commands: Sequence[Sequence[str | Path]], warm_turns: int = WARM_TURNS
) -> Iterator[Group]:
    """Start one consumer process per command, wait until ready, and stop them at the end.

    Each command gets the folder for its commits as its last argument, and the settings in its
    environment.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rapport-group-")))
        started = [
            stack.enter_context(
                processes.running([*command, folder], folder / "log", environment(settings))
            )
            for command in commands
        ]
        group = Group(settings, folder, started)
        group.warm(warm_turns)
        yield group
