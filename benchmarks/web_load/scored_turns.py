"""Writes scored turns on a schedule, as workers do, but without a model.

A process of its own. The scores come from ``stand_in_scorer``; everything after them is the
service's: the core's sessions, the store's commit with its outbox, and publishing.

A flow with a rate stands for workers on other machines, so this process must cost little while it
is written: the statements of its commits and its record batches are recorded before, and sent
again on schedule. Database and broker do the same work as for the workers; times in rows and
messages are those of the recording.

Standard input has a ``Flow`` a line. With a rate, an empty line on standard output says that it is
recorded, and the next line of input is its start in seconds since 1970. It ends with a ``Written``.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
import uvloop
from aiokafka import AIOKafkaProducer
from msgspec import Struct, structs

from benchmarks.load import workload
from benchmarks.load.workload import Turn
from benchmarks.web_load import recorded_messages
from benchmarks.web_load.recorded_commits import RecordingStore, Replay, Statement
from benchmarks.web_load.recorded_messages import RecordBatch, RecordingProducer
from benchmarks.web_load.stand_in_scorer import StandInScorer
from stream_app import bootstrap
from stream_app.contracts import scores
from stream_app.core.pipeline.pipeline import Pipeline, Source, receive
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.ports import Message
from stream_app.inference.bundles import bundle as bundles
from stream_app.settings import Settings
from stream_app.worker.kafka.publishing import publish
from stream_app.worker.kafka.topics import client_options

EVERY: Final = 0.1
"""Seconds of turns in a batch, as a worker under load collects them."""
AT_ONCE: Final = 500
"""Turns of a batch when there is no schedule."""
FIRST_SEQ: Final = 8
"""Turns that the sessions of ``benchmarks.storage.open_sessions`` have had."""
TEXTS: Final = 2000
"""Different texts of turns."""


class Flow(Struct, frozen=True):
    """``rate``: turns/s; 0: as fast as possible. ``count``: turns, of the sessions in turn.

    ``sessions`` and ``run``: how many sessions are open, and their names' beginning. ``log``: where
    the time of every commit is written.
    """

    rate: float
    count: int
    sessions: int
    run: str
    first_seq: int = FIRST_SEQ
    log: str = ""


class Written(Struct, frozen=True):
    """The turns that were written.

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


class Recorded(Struct, frozen=True):
    """A batch that was recorded; ``scored``: session, number and stage of each score."""

    commit: bytes
    published: list[RecordBatch]
    scored: list[str]


class Writer:
    """Writes the next turns of the open sessions."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        bundle = bundles.load(settings.bundle)
        scorer = StandInScorer(bundle.manifest, bundle.manifest.encoder.hidden_size)
        self._pipeline = Pipeline(scorer, bootstrap.policy(settings, scorer))
        opened = bootstrap.store(settings)
        self.store = RecordingStore(opened.engine, lambda: datetime.now(UTC), opened.secrets)
        self.store.load_privacy(settings.redact)
        self._next: dict[str, int] = {}
        self._place: dict[str, int] = {}

    def batches(self, flow: Flow) -> Iterator[Batch]:
        """Compute what the core makes of the turns, each batch after that before is committed."""
        said = workload.turns(min(flow.count, TEXTS))
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
        states = self.store.load_states(names, self._pipeline.bundle_id)
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
        """Commit and publish."""
        producer = AIOKafkaProducer(**client_options(self._settings), acks="all", linger_ms=0)
        await producer.start()
        try:
            if flow.rate:
                recorded, statements = await self._record(flow, producer)
                return await self._replay(flow, recorded, statements, producer)
            return await self._write_at_once(flow, producer)
        finally:
            await producer.stop()

    async def _write_at_once(self, flow: Flow, producer: AIOKafkaProducer) -> Written:
        start, before, messages = time.time(), time.process_time(), 0
        for batch in self.batches(flow):
            key = self.store.commit(batch.result, batch.messages)
            await publish(producer, batch.messages)
            messages += len(batch.messages)
            if key is not None:
                self.store.delete_outbox_entries([key])
        cpu = time.process_time() - before
        return Written(start, flow.count, time.time() - start, 0.0, cpu, messages)

    async def _record(
        self, flow: Flow, producer: AIOKafkaProducer
    ) -> tuple[list[Recorded], list[Statement]]:
        kept = RecordingProducer(producer, self._settings.topic_partitions)
        found = []
        with self.store.recording() as recorder:
            for batch in self.batches(flow):
                recorder.take()  # the states that were read: a worker has them in its cache
                self.store.commit(batch.result, batch.messages)
                await publish(kept, batch.messages)
                scored = [
                    f"{one.session_id} {one.seq} {one.stage.value}"
                    for one in batch.result.turn_scores
                ]
                found.append(Recorded(recorder.take(), kept.take(), scored))
        self._tidy()
        return found, recorder.statements

    def _tidy(self) -> None:
        """Remove what the recording has left: dead rows, and pages that are not yet on the disk."""
        with self.store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as opened:
            for command in ("VACUUM ANALYZE", "CHECKPOINT"):
                opened.exec_driver_sql(command)

    async def _replay(
        self,
        flow: Flow,
        recorded: list[Recorded],
        statements: Sequence[Statement],
        producer: AIOKafkaProducer,
    ) -> Written:
        replay = Replay(self._settings.database, statements)
        await producer.partitions_for(self._settings.turn_score_topic)
        gc.freeze()
        _answer(b"")
        start = float(sys.stdin.buffer.readline())
        before, late, messages = time.process_time(), 0.0, 0
        committed: list[float] = []
        for number, batch in enumerate(recorded):
            due = start + number * EVERY
            await asyncio.sleep(max(0.0, due - time.time()))
            outbox = await asyncio.to_thread(replay.commit, batch.commit)
            committed.append(time.time())
            late = committed[-1] - due
            messages += await recorded_messages.send(producer, batch.published)
            if outbox is not None:
                await asyncio.to_thread(replay.delete_outbox_entry, outbox)
        written = Written(
            start,
            flow.count,
            time.time() - start,
            late,
            time.process_time() - before,
            messages,
        )
        replay.close()
        gc.unfreeze()
        if flow.log:
            lines = (
                f"{each} {at:.4f}\n"
                for batch, at in zip(recorded, committed, strict=True)
                for each in batch.scored
            )
            Path(flow.log).write_text("".join(lines), "utf-8")
        return written


def main() -> None:
    """Write flows until standard input ends."""
    writer = Writer(Settings())
    while line := sys.stdin.buffer.readline():
        written = uvloop.run(writer.write(msgspec.json.decode(line, type=Flow)))
        _answer(msgspec.json.encode(written))


def _answer(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
