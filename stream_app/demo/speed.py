"""Throughput and latency of the service, compared with the ONNX sessions: ``rapport demo bench``.

Throughput: all turns are produced before the worker starts, so it never waits for them; measured
from its first commit to its last. Latency: turns are produced on a fixed schedule (open loop),
first one by one, then at half the throughput; measured from the broker's time stamp to the commit.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import sqlalchemy as sa
from msgspec import Struct
from pydantic import SecretStr
from rich.console import Console
from rich.table import Table

from stream_app import bootstrap
from stream_app.contracts.events import Turn, decode
from stream_app.core.pipeline.pipeline import Source, receive
from stream_app.demo import up
from stream_app.errors import RapportError
from stream_app.inference.scorer import OnnxScorer
from stream_app.processes.child_processes import child_process
from stream_app.recordings import replay
from stream_app.recordings.event_files import TimedEvent, sample_events, sample_sessions
from stream_app.settings import Settings
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from stream_app.worker.kafka import broker

BARE_ROUNDS = 3
LATENCY_SECONDS = 20.0
LONE_RATE = 4.0
"""Turns per second; low enough that the worker is idle in between."""
LONE_SECONDS = 10.0
PATIENCE = 300.0
SAMPLES_LAST = 86_400.0
"""Seconds that a turn's time may be ahead: sample sessions are sent faster than they were held."""


class Call(Struct, frozen=True):
    """A recorded run of an ONNX session, to be replayed and timed."""

    session: ort.InferenceSession
    outputs: list[str]
    feeds: dict[str, Any]


class Recorder:
    """Wraps an ONNX session and records its calls."""

    def __init__(self, session: ort.InferenceSession, calls: list[Call]) -> None:
        self._session = session
        self._calls = calls

    def run(self, outputs: list[str], feeds: dict[str, Any]) -> Any:
        """Record the call and run the session."""
        self._calls.append(Call(self._session, outputs, feeds))
        return self._session.run(outputs, feeds)


class Latency(Struct, frozen=True):
    """Percentiles of the time from produced to committed, in milliseconds."""

    p50: float
    p95: float
    p99: float


def run(settings: Settings, console: Console, turns: int) -> None:
    """Measure and print, with a separate broker and database."""
    with (
        tempfile.TemporaryDirectory(prefix="rapport-bench-") as folder,
        broker.running() as address,
    ):
        local = settings.model_copy(
            update={
                "kafka_brokers": address,
                **up.EMBEDDED_BROKER,
                "database_url": SecretStr(f"sqlite:///{folder}/bench.db"),
                "topic_partitions": 1,
                "clock_tolerance": SAMPLES_LAST,
            }
        )
        up.prepare(local)
        scorer = bootstrap.scorer(local)
        events = list(islice(_turns("load"), turns))
        calls = _recorded_calls(local, scorer, events)
        before = _bare_rates(calls, turns)
        asyncio.run(replay.send(local, events, speed=0.0))
        store = bootstrap.store(local)
        log = Path(folder) / "worker.log"
        with child_process(local, "worker", log):
            _await_turns(store, turns, log)
            ours = _throughput(store)
            rate = ours / 2
            sent = turns
            for name, per_second, seconds in (
                ("lone", LONE_RATE, LONE_SECONDS),
                ("late", rate, LATENCY_SECONDS),
            ):
                timed = _scheduled(name, per_second, seconds)
                sent += asyncio.run(replay.send(local, timed, speed=1.0))
                _await_turns(store, sent, log)
        bare = statistics.median(before + _bare_rates(calls, turns))
        lone, late = _latency(store, "lone"), _latency(store, "late")
        store.close()
    console.print(_report(scorer, turns, bare, ours, rate, lone, late))


def _turns(run: str) -> Iterator[TimedEvent]:
    """An endless stream of turns: the sample sessions repeated under new ids."""
    now = datetime.now(UTC)
    paths = [path for path in sample_sessions() if not path.stem.startswith("broken")]
    number = 0
    while True:
        sessions = [
            [
                event
                for event in sample_events(path, f"{run}-{number}-{path.stem}", now, 1.0)
                if isinstance(decode(event.value), Turn)
            ]
            for path in paths
        ]
        number += 1
        for place in range(max(map(len, sessions))):
            yield from (session[place] for session in sessions if place < len(session))


def _scheduled(run: str, rate: float, seconds: float) -> Iterator[TimedEvent]:
    """Turns at a constant rate (per second) for this many seconds."""
    for place, event in enumerate(islice(_turns(run), int(rate * seconds))):
        yield TimedEvent(place / rate, event.key, event.value)


def _recorded_calls(settings: Settings, scorer: OnnxScorer, events: list[TimedEvent]) -> list[Call]:
    """The ONNX calls of the pipeline for these events, with the worker's batch size."""
    calls: list[Call] = []
    sessions = scorer.encoder.session, scorer.head.session
    scorer.encoder.session = Recorder(sessions[0], calls)
    scorer.head.session = Recorder(sessions[1], calls)
    pipeline = bootstrap.pipeline(settings, scorer)
    states: dict[str, Any] = {}
    for start in range(0, len(events), settings.batch_max):
        chunk = events[start : start + settings.batch_max]
        pipeline.process(
            [receive(Source("bench", 0, start + i), event.value) for i, event in enumerate(chunk)],
            states,
        )
    scorer.encoder.session, scorer.head.session = sessions
    return calls


def _bare_rates(calls: list[Call], turns: int) -> list[float]:
    """Turns per second of the recorded calls alone."""
    rates = []
    for _ in range(BARE_ROUNDS):
        start = time.perf_counter()
        for call in calls:
            call.session.run(call.outputs, call.feeds)
        rates.append(turns / (time.perf_counter() - start))
    return rates


def _await_turns(store: Store, wanted: int, log: Path) -> None:
    give_up = time.monotonic() + PATIENCE
    query = sa.select(sa.func.count()).select_from(tables.turns)
    while time.monotonic() < give_up:
        with store.engine.connect() as connection:
            if connection.scalar(query) == wanted:
                return
        time.sleep(0.25)
    tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-5:])
    raise RapportError(f"the worker did not commit {wanted} turns in {PATIENCE:.0f} s\n{tail}")


def _throughput(store: Store) -> float:
    """Turns per second from the first commit to the last, without the first batch."""
    table = tables.turns
    query = (
        sa.select(table.c.stored_at, sa.func.count())
        .group_by(table.c.stored_at)
        .order_by("stored_at")
    )
    with store.engine.connect() as connection:
        commits = connection.execute(query).all()
    if len(commits) < 2:
        raise RapportError("all turns were in one batch: use a larger --turns")
    seconds = (commits[-1][0] - commits[0][0]).total_seconds()
    return float(sum(count for _, count in commits[1:]) / seconds)


def _latency(store: Store, run: str) -> Latency:
    table = tables.turns
    query = sa.select(table.c.produced_at, table.c.stored_at).where(
        table.c.session_id.startswith(f"{run}-")
    )
    with store.engine.connect() as connection:
        pairs = connection.execute(query).all()
    millis = [(stored - produced).total_seconds() * 1000 for produced, stored in pairs]
    p50, p95, p99 = np.percentile(millis, [50, 95, 99]).tolist()
    return Latency(p50, p95, p99)


def _report(
    scorer: OnnxScorer,
    turns: int,
    bare: float,
    ours: float,
    rate: float,
    lone: Latency,
    late: Latency,
) -> Table:
    table = Table(
        title=f"{scorer.bundle_id} on {scorer.provider.value}, {turns} turns, one worker, SQLite",
        title_justify="left",
    )
    table.add_column("what")
    table.add_column("figure", justify="right")
    table.add_row("ONNX sessions alone, same batches (median)", f"{bare:.0f} turns/s")
    table.add_row("broker → worker → scored → committed", f"{ours:.0f} turns/s")
    table.add_row("ratio", f"{ours / bare:.2f}")
    for what, latency in (("a lone turn", lone), (f"at {rate:.0f} turns/s", late)):
        table.add_row(f"produced → committed, {what}, p50", f"{latency.p50:.0f} ms")
        table.add_row("p95", f"{latency.p95:.0f} ms")
        table.add_row("p99", f"{latency.p99:.0f} ms")
    return table
