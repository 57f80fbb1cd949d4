"""`python -m tests.soak --turns 1000000`: checks that a worker's memory does not grow.

Sessions start and end, many of them without an end event; memory after the first tenth is compared
with memory at the end. By default the worker's processor, cache and store (SQLite) run in this
process without a model, so that only the worker's state can grow. With `--worker`, a real worker
process with model, Faust and broker is used, which is as slow as `rapport demo bench` reports.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import sqlalchemy as sa

from stream_app.core.pipeline.pipeline import Received, Source, receive
from stream_app.store.database import tables
from stream_app.store.stream import schema
from stream_app.store.stream.repository import open_store
from stream_app.worker.batches.processor import BatchProcessor
from stream_app.worker.batches.session_cache import CACHED_SESSIONS
from stream_app.worker.kafka.broker import free_port
from tests.e2e.service import Service
from tests.e2e.test_health import answer
from tests.store.batches import pipeline, prepare
from tests.worker.processors import processor

BATCH = 256
OPEN_AT_A_TIME = 2000
UNFINISHED = 0.2
AHEAD = 5000
"""Events sent before waiting for the worker to catch up."""
FLUSH_EVERY = 200
"""Batches between two checks for idle sessions."""


@dataclass
class Soaked:
    """The measurements; memory in MiB."""

    turns: int
    sessions: int
    seconds: float
    memory: list[float]
    """After each tenth."""
    cached: int
    cache_bound: int
    still_open: int

    @property
    def growth(self) -> float:
        """Growth relative to the memory after the first tenth."""
        return self.memory[-1] / self.memory[0] - 1


def events(turns: int, sessions: int, seed: int) -> Iterator[tuple[datetime, bytes]]:
    """Turns of this many sessions, at most `OPEN_AT_A_TIME` open at once; some never end."""
    chance = random.Random(seed)
    length = max(2, turns // sessions)
    now = datetime(2026, 1, 5, tzinfo=UTC)
    places = min(OPEN_AT_A_TIME, sessions)
    current = [(number, 0) for number in range(places)]
    started, sent = places, 0
    while sent < turns:
        place = chance.randrange(places)
        number, seq = current[place]
        now += timedelta(milliseconds=20)
        event = {
            "type": "turn",
            "session_id": f"soak-{number}",
            "seq": seq,
            "speaker_id": f"{number}/{seq % 2}",
            "role": ("client", "counsellor")[seq % 2],
            "text": f"How was it the {chance.randrange(1000)}th time?",
            "occurred_at": now.isoformat(),
            "consent": True,
        }
        yield now, json.dumps(event).encode()
        sent += 1
        current[place] = (number, seq + 1)
        if seq + 1 >= length:
            if chance.random() >= UNFINISHED:
                end = {"type": "session_end", "session_id": f"soak-{number}"}
                yield now, json.dumps({**end, "occurred_at": now.isoformat()}).encode()
            current[place] = (started, 0)
            started += 1


def run(turns: int, sessions: int, cached: int = 1000, seed: int = 1) -> Soaked:
    """Run the events through one processor."""
    started = time.monotonic()
    process = psutil.Process()
    memory: list[float] = []
    with tempfile.TemporaryDirectory(prefix="rapport-soak-") as folder:
        store = open_store(f"sqlite:///{Path(folder)}/soak.db")
        schema.upgrade(store)
        prepare(store)
        worker = processor(store, retry_for=0.0, cached=cached)
        batch: list[Received] = []
        offset = batches = 0
        now = datetime.now(UTC)
        for now, value in events(turns, sessions, seed):
            batch.append(receive(Source("t", 0, offset), value, {}, now, now))
            offset += 1
            if len(batch) < BATCH:
                continue
            worker.outbox.mark_published(worker.handle(worker.prepare(batch)))
            batch = []
            batches += 1
            if batches % FLUSH_EVERY == 0:
                _flush_idle(worker, now - timedelta(minutes=30))
            if offset >= turns * (len(memory) + 1) / 10:
                memory.append(process.memory_info().rss / 2**20)
        if batch:
            worker.outbox.mark_published(worker.handle(worker.prepare(batch)))
        _flush_idle(worker, now + timedelta(days=1))
        still_open = len(store.idle_sessions(pipeline().bundle_id, now + timedelta(days=1), None))
        memory.append(process.memory_info().rss / 2**20)
        store.close()
    seconds = time.monotonic() - started
    return Soaked(turns, sessions, seconds, memory, len(worker.cache), cached, still_open)


def run_worker(turns: int, sessions: int, seed: int = 1) -> Soaked:
    """Run the events through one worker process with the embedded broker and SQLite."""
    started = time.monotonic()
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="rapport-soak-") as folder:
        service = Service(Path(folder), health_port=port, idle_timeout=60.0)
        try:
            process = psutil.Process(service.start_worker().pid)
            values = [value for _, value in events(turns, sessions, seed)]
            memory: list[float] = []
            ahead = min(AHEAD, len(values) // 10)
            for start in range(0, len(values), ahead):
                service.send(values[start : start + ahead])
                done = min(start + ahead, len(values))
                _wait_for_events(port, done)
                if done >= len(values) * (len(memory) + 1) / 10:
                    memory.append(process.memory_info().rss / 2**20)
            cached_now = int(_metric(port, "rapport_cached_sessions"))
            give_up = time.monotonic() + 120.0
            while (still_open := _still_open(service)) and time.monotonic() < give_up:
                time.sleep(1.0)
        finally:
            service.close()
    seconds = time.monotonic() - started
    return Soaked(turns, sessions, seconds, memory, cached_now, CACHED_SESSIONS, still_open)


def _wait_for_events(port: int, count: int) -> None:
    give_up = time.monotonic() + 600.0
    while _metric(port, "rapport_events_total") < count:
        if time.monotonic() > give_up:
            raise AssertionError(f"{count} events are not through after ten minutes")
        time.sleep(0.2)


def _metric(port: int, name: str) -> float:
    lines = answer(port, "/metrics")[1].splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if re.match(rf"{name}[ {{]", line))


def _still_open(service: Service) -> int:
    query = sa.select(sa.func.count()).where(tables.session_scores.c.status == "open")
    with service.store.reading() as connection:
        return int(connection.scalar(query) or 0)


def _flush_idle(worker: BatchProcessor, before: datetime) -> None:
    while (found := worker.due.flush_idle(before, [0])) is not None:
        worker.outbox.mark_published(found)


def main() -> None:
    """Run and print the measurements."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--worker", action="store_true", help="a real worker process")
    options = parser.parse_args()
    soak = run_worker if options.worker else run
    found = soak(options.turns, options.sessions)
    print(f"{found.turns} turns, {found.sessions} sessions, {found.seconds:.0f} s")
    print(
        f"memory after each tenth, MiB: {' '.join(f'{m:.1f}' for m in found.memory)}; "
        f"from the first to the end {found.growth:+.1%}"
    )
    print(f"{found.cached} sessions in the cache, its bound is {found.cache_bound}")
    print(f"{found.still_open} sessions open after the last idle check")


if __name__ == "__main__":
    main()
