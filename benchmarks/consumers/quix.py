"""The same job on Quix Streams, following its documentation.

A stateful function keeps the window of each session in the engine's state; a batching sink writes
to SQLite at each checkpoint. The engine passes one message at a time, so turns are encoded singly,
which on a CPU costs the same as well-sorted batches within a few percent.

Needs Apache Kafka: the embedded broker does not support the engine's topic requests.
"""

import sqlite3
from typing import Any

import msgspec
from quixstreams import Application
from quixstreams.sinks import BatchingSink, SinkBatch

from benchmarks.consumers.job import INSERT, SCHEMA, Job, as_json, job
from benchmarks.load.clocks import ModelClock
from benchmarks.load.commits import CommitWriter
from stream_app.contracts.events import Turn, decode
from stream_app.core.measures.window import WindowPolicy, WindowState, WindowTurn, push
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.devices.provider_choice import Provider
from stream_app.inference.scorer import OnnxScorer

POLICY = WindowPolicy(before=3, after=3)
CHECKPOINT_TURNS = 256
CHECKPOINT_SECONDS = 0.25
WINDOW = "window"


class Scored(msgspec.Struct):
    """The sink's record of one turn."""

    session_id: str
    occurred_at: float
    rows: list[tuple[str, int, str, bytes]]


class SqliteSink(BatchingSink):  # type: ignore[misc]  # not typed where the rest is
    """Writes one transaction per checkpoint."""

    def __init__(self, work: Job, clock: ModelClock) -> None:
        super().__init__()
        self._work = work
        self._clock = clock
        self._commits = CommitWriter(work.commits)
        self._database: sqlite3.Connection | None = None

    def setup(self) -> None:
        """Open the database."""
        self._database = sqlite3.connect(self._work.database, check_same_thread=False)
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", SCHEMA):
            self._database.execute(statement)

    def write(self, batch: SinkBatch) -> None:
        """Write the records since the last checkpoint."""
        if self._database is None:
            raise RuntimeError("the sink was not set up")
        scored: list[Scored] = [item.value for item in batch]
        with self._database:
            self._database.executemany(INSERT, [row for item in scored for row in item.rows])
        turns = [(item.session_id, item.occurred_at) for item in scored]
        self._commits.write(turns, self._clock.seconds)


def main() -> None:
    """Run until a signal arrives."""
    work = job()
    clock = ModelClock()
    scorer: Any = OnnxScorer(bundles.load(work.bundle), Provider.CPU)
    for part in (scorer.encoder, scorer.head):
        part.session = clock.watch(part.session)

    def score(value: bytes, state: Any) -> Scored | None:
        turn = decode(value)
        if not isinstance(turn, Turn):
            return None
        kept = state.get_bytes(WINDOW)
        window = msgspec.msgpack.decode(kept, type=WindowState) if kept else WindowState()
        encoding = scorer.encode([turn.text], [turn.speaker_role])[0]
        encoded = WindowTurn(
            turn.seq,
            turn.speaker_role,
            turn.occurred_at,
            0,
            0,
            encoding.vectors,
            encoding.rationales,
        )
        requests = push(window, encoded, POLICY)
        scores = scorer.score(requests)
        state.set_bytes(WINDOW, msgspec.msgpack.encode(window))
        rows = [
            (turn.session_id, request.turn.seq, request.stage.value, as_json(found))
            for request, found in zip(requests, scores, strict=True)
        ]
        return Scored(turn.session_id, turn.occurred_at.timestamp(), rows)

    app = Application(
        broker_address=work.brokers,
        consumer_group=work.group,
        auto_offset_reset="earliest",
        state_dir=work.commits / "state",
        commit_interval=CHECKPOINT_SECONDS,
        commit_every=CHECKPOINT_TURNS,
        loglevel="WARNING",
    )
    topic = app.topic(work.topic, key_deserializer="str", value_deserializer="bytes")
    scored = app.dataframe(topic).apply(score, stateful=True)
    scored = scored.filter(lambda item: item is not None)
    scored.sink(SqliteSink(work, clock))
    app.run()


if __name__ == "__main__":
    main()
