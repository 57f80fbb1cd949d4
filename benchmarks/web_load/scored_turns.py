"""Writes scored turns on a schedule, as workers do, but without a model.

A process of its own. Everything after the scores is the service's: the core's sessions, the store's
commit with its outbox, and the topics. The scores come from ``stand_in_scorer``, because a model
that computes as many turns would take all cores. What the core computes is computed before the
clock starts; during the flow there are only the commit and publishing.

Standard input has a ``Flow`` a line. With a rate, an empty line on standard output says that it is
prepared, and the next line of input is its start in seconds since 1970. It ends with a ``Written``.
"""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import psutil
import uvloop
from aiokafka import AIOKafkaProducer
from msgspec import Struct, structs

from benchmarks import workload
from benchmarks.web_load.stand_in_scorer import StandInScorer
from benchmarks.workload import Turn
from stream_app import bootstrap
from stream_app.contracts import scores
from stream_app.contracts.cloudevents import outgoing_headers
from stream_app.core.batch import BatchResult
from stream_app.core.pipeline import Pipeline, Source, receive
from stream_app.core.ports import Message
from stream_app.inference import bundle as bundles
from stream_app.settings import Settings
from stream_app.store.repository import Store
from stream_app.worker.topics import client_options

EVERY: Final = 0.1
"""Seconds of turns in a batch, as a worker under load collects them."""
AT_ONCE: Final = 500
"""Turns of a batch when there is no schedule."""
NICE: Final = 6
"""A lower priority than the console's, as docs/operations.md recommends for shared cores.

Its weight is about a quarter of the usual one, as ``cpu_shares`` in docker-compose.yml.
"""
FIRST_SEQ: Final = 8
"""Turns that the sessions of ``benchmarks.open_sessions`` have had."""


class Flow(Struct, frozen=True):
    """``rate``: turns/s; 0: as fast as possible. ``count``: turns, of as many sessions.

    ``sessions`` and ``run``: how many sessions are open, and their names' beginning. With a rate,
    ``count`` is at most ``sessions``: everything is computed before anything is written. ``log``:
    where the time of every commit is written.
    """

    rate: float
    count: int
    sessions: int
    run: str
    first_seq: int = FIRST_SEQ
    log: str = ""


class Written(Struct, frozen=True):
    """What was written.

    ``start``: seconds since 1970. ``seconds``: until everything was published. ``late``: seconds
    that the last batch was committed after its time. ``cpu``: seconds of this process.
    """

    start: float
    turns: int
    seconds: float
    late: float
    cpu: float
    messages: int

    @property
    def rate(self) -> float:
        """Turns a second."""
        return self.turns / self.seconds


class Batch(Struct):
    """A batch that is ready to be committed."""

    result: BatchResult
    messages: list[Message]


class Writer:
    """Holds the states of the open sessions and writes their next turns."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        bundle = bundles.load(settings.bundle)
        scorer = StandInScorer(bundle.manifest, bundle.manifest.encoder.hidden_size)
        self._pipeline = Pipeline(scorer, bootstrap.policy(settings, scorer))
        self._store: Store = bootstrap.store(settings)
        self._store.load_privacy(settings.redact)
        self._next: dict[str, int] = {}
        self._place: dict[str, int] = {}

    def batches(self, flow: Flow) -> Iterator[Batch]:
        """Compute what the core makes of the turns; every session occurs once in a round."""
        said = workload.turns(min(flow.count, 2000))
        begin = self._place.get(flow.run, 0)
        self._place[flow.run] = begin + flow.count
        size = max(1, round(flow.rate * EVERY)) if flow.rate else AT_ONCE
        for first in range(0, flow.count, size):
            numbers = range(first, min(first + size, flow.count))
            turns = [
                self._turn(said[n % len(said)], flow, (begin + n) % flow.sessions) for n in numbers
            ]
            yield self._batch(flow.run, turns)

    def _turn(self, said: Turn, flow: Flow, session: int) -> Turn:
        name = workload.session_name(flow.run, session)
        seq = self._next.setdefault(name, flow.first_seq)
        self._next[name] = seq + 1
        return structs.replace(
            said, session=session, seq=seq, role=workload.ROLES[(session + seq) % 2]
        )

    def _batch(self, run: str, turns: list[Turn]) -> Batch:
        now = time.time()
        names = list(dict.fromkeys(workload.session_name(run, turn.session) for turn in turns))
        states = self._store.load_states(names, self._pipeline.bundle_id)
        received = [
            receive(
                Source(run, turn.session % self._settings.topic_partitions, 0),
                workload.event(turn, run, now),
            )
            for turn in turns
        ]
        result = self._pipeline.process(received, states)
        return Batch(result, list(self._messages(result)))

    def _messages(self, result: BatchResult) -> Iterator[Message]:
        settings = self._settings
        for topic, kind, outputs in (
            (settings.turn_score_topic, "turn_score", result.turn_scores),
            (settings.session_score_topic, "session_score", result.session_scores),
            (settings.alert_topic, "alert", result.alerts),
        ):
            for output in outputs:
                yield Message(topic, output.session_id.encode(), scores.encode(output), kind)

    async def write(self, flow: Flow) -> Written:
        """Commit and publish on schedule."""
        ready = self.batches(flow)
        start = time.time()
        if flow.rate:
            ready = iter(list(ready))
            _answer(b"")
            start = float(sys.stdin.buffer.readline())
        producer = AIOKafkaProducer(**client_options(self._settings), acks="all", linger_ms=5)
        await producer.start()
        log = Path(flow.log) if flow.log else None
        notes: list[str] = []
        process = psutil.Process()
        before = _cpu(process)
        late = 0.0
        messages = 0
        try:
            for number, batch in enumerate(ready):
                due = start + number * EVERY
                if flow.rate:
                    await asyncio.sleep(max(0.0, due - time.time()))
                key = await asyncio.to_thread(self._store.commit, batch.result, batch.messages)
                late = time.time() - due
                if log is not None:
                    notes += _notes(batch.result, time.time())
                published = await asyncio.gather(
                    *[
                        await producer.send(
                            m.topic,
                            m.value,
                            key=m.key,
                            headers=list(outgoing_headers(m.type or "", m.value or b"")),
                        )
                        for m in batch.messages
                    ]
                )
                messages += len(published)
                if key is not None:
                    await asyncio.to_thread(self._store.delete_outbox_entries, [key])
            await producer.flush()
        finally:
            await producer.stop()
            if log is not None:
                log.write_text("".join(notes), "utf-8")
        return Written(
            start, flow.count, time.time() - start, late, _cpu(process) - before, messages
        )


def _notes(result: BatchResult, at: float) -> list[str]:
    return [
        f"{one.session_id} {one.seq} {one.stage.value} {at:.4f}\n" for one in result.turn_scores
    ]


def _cpu(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


def main() -> None:
    """Write flows until standard input ends."""
    os.nice(NICE)
    writer = Writer(Settings())
    while line := sys.stdin.buffer.readline():
        written = uvloop.run(writer.write(msgspec.json.decode(line, type=Flow)))
        _answer(msgspec.json.encode(written))


def _answer(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
