"""``python -m benchmarks.turn_cost``: CPU of a turn outside the model, by part.

The worker's own code processes turns in one thread, with stand-ins for the ONNX sessions
(``stand_in_sessions``) and without a broker: decoded, encoded ahead, scored, committed to a real
database, and packed into record batches. CPU of the database is not included, except for SQLite,
which runs in the process.

Then a real ``rapport worker`` with the same stand-ins consumes the turns from the embedded broker.
What its process needs more than the parts is the price of Faust, the Kafka client and the hand-over
between threads. Both are run in turn; the figures are medians of the rounds.

A busy machine makes every microsecond of CPU longer, because cores share caches and execution
units. So a fixed piece of Python is timed all the while, and all figures are scaled to a machine on
which it takes ``REFERENCE_US``.
"""

import argparse
import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any, Final

from aiokafka import AIOKafkaProducer

from benchmarks.errors import Unavailable
from benchmarks.load import consumer_group, stand_in_sessions, testbed, workload
from benchmarks.load.part_clock import PartClock
from benchmarks.load.rounds import median
from benchmarks.load.testbed import Testbed
from benchmarks.load.workload import Turn
from benchmarks.report import markdown
from stream_app import bootstrap, logs
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.errors import RapportError
from stream_app.inference.bundles import bundle as bundles
from stream_app.processes.worker import freeze_garbage_collector
from stream_app.sealing import envelope
from stream_app.settings import LogFormat, Settings
from stream_app.store.stream.repository import Store
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.batches.outgoing import OutputTopics
from stream_app.worker.batches.processor import BatchProcessor, BatchSettings
from stream_app.worker.batches.record_decoder import RecordDecoder
from stream_app.worker.kafka import publishing
from stream_app.worker.kafka.app import RETRY_FOR

BATCHES: Final = (256, 32)
TURNS: Final = 2048
SESSIONS: Final = 100
PARTITIONS: Final = 12
PARTS: Final = {
    "decode": "records to events, time check",
    "encode": "tokeniser, rationales",
    "core": "sessions, windows, aggregates, rules",
    "score": "windows to the head graph, calibration, scores",
    "load": "states from cache or database",
    "messages": "scores and alerts to JSON",
    "rows": "rows of the tables",
    "redact": "personal details masked",
    "seal": "encryption",
    "commit": "statements, outbox",
    "publish": "record batches of the messages",
    "rest": "retries, metrics, positions",
}
WORKER: Final = "whole worker"
REFERENCE_US: Final = 460.0
"""An idle core of the machine of ``docs/performance.md``."""
TURNS_A_REFERENCE: Final = 64


class Reference:
    """Times the fixed piece of Python, in the thread that calls it."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    def time(self) -> None:
        """Run it once."""
        start = time.thread_time()
        counts: dict[str, int] = {}
        for number in range(2000):
            counts[str(number % 97)] = counts.get(str(number % 97), 0) + number
        self.taken.append(time.thread_time() - start)

    @contextmanager
    def meanwhile(self) -> Iterator[None]:
        """Time it now and then in another thread."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.05):
                self.time()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def scale(self) -> float:
        """Return the factor for times, and forget what was timed."""
        mean = sum(self.taken) / len(self.taken)
        self.taken.clear()
        return REFERENCE_US / (mean * 1e6)


class NoBroker:
    """What ``publishing.publish`` needs of a producer; drops the record batches."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self.create_batch = producer.create_batch

    async def partitions_for(self, topic: str) -> set[int]:
        """The partitions of every topic."""
        del topic
        return set(range(PARTITIONS))

    async def send_batch(self, records: Any, topic: str, partition: int) -> asyncio.Future[None]:
        """Drop them."""
        del records, topic, partition
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sent.set_result(None)
        return sent


class Processor:
    """A worker's processor with clocks around its parts."""

    def __init__(self, settings: Settings, clock: PartClock) -> None:
        scorer = bootstrap.scorer(settings)
        pipeline: Pipeline = bootstrap.pipeline(settings, scorer)
        stand_in_sessions.install(scorer, pipeline)
        self.store: Store = bootstrap.prepared_store(settings, scorer)
        metrics = WorkerMetrics()
        self._decoder = RecordDecoder(metrics)
        self._processor = BatchProcessor(
            pipeline,
            self.store,
            BatchSettings(
                OutputTopics("turn-scores", "session-scores", "alerts"),
                RETRY_FOR,
                times=settings.plausible_times,
            ),
            metrics,
        )
        self._clock = clock
        self.reference = Reference()
        self._offset = 0
        for owner, attribute, part in (
            (self._processor, "prepare", "decode"),
            (scorer, "encode", "encode"),
            (scorer, "score", "score"),
            (pipeline, "process", "core"),
            (self._processor.scoring, "_states", "load"),
            (self._processor.outgoing, "messages", "messages"),
            (self.store, "_prepared", "rows"),
            (self.store, "commit", "commit"),
            (self.store, "delete_outbox_entries", "commit"),
        ):
            clock.wrap(owner, attribute, part)
        clock.wrap(type(self.store.privacy), "redacted", "redact")

    async def run(self, values: Sequence[tuple[bytes, bytes]], size: int, client: Any) -> None:
        """Process records (key, value) in batches of this size."""
        for first in range(0, len(values), size):
            events = [self._event(*value) for value in values[first : first + size]]
            batch = self._processor.prepare(map(self._decoder.decode, events))
            with self._clock.part("rest"):
                committed = self._processor.handle(batch)
            with self._clock.part("publish"):
                await publishing.publish(client, committed.messages)
            with self._clock.part("rest"):
                self._processor.outbox.mark_published_later(committed)
            for _ in range(max(1, len(events) // TURNS_A_REFERENCE)):
                self.reference.time()

    def _event(self, key: bytes, value: bytes) -> Any:
        self._offset += 1
        message = SimpleNamespace(
            topic="turns",
            partition=0,
            offset=self._offset,
            headers=(),
            timestamp=time.time(),
            timestamp_type=0,
            key=key,
        )
        return SimpleNamespace(message=message, value=value)


def watch_shared(clock: PartClock) -> None:
    """Count encryption, wherever it is called."""
    clock.wrap(envelope, "encrypt", "seal")


def measured(
    bed: Testbed, database: str, turns: list[Turn], sizes: Sequence[int], rounds: int, workers: bool
) -> Iterator[tuple[int, dict[str, float]]]:
    """µs of CPU a turn by part, one result for each batch size and round."""
    clock = PartClock()
    watch_shared(clock)
    processor = Processor(bed.deployment(database), clock)
    with ExitStack() as stack:
        groups = {
            size: stack.enter_context(
                consumer_group.stand_in_workers(bed.deployment(database, batch_max=size))
            )
            for size in (sizes if workers else ())
        }
        asyncio.run(_round(processor, workload.turns(256), "warm", 64))
        freeze_garbage_collector()
        for number in range(rounds):
            for size in sizes:
                clock.seconds.clear()
                processor.reference.taken.clear()
                asyncio.run(_round(processor, turns, f"run{number}-{size}", size))
                scale = processor.reference.scale() / len(turns) * 1e6
                found = {part: clock.seconds[part] * scale for part in PARTS}
                if size in groups:
                    with processor.reference.meanwhile():
                        burst = groups[size].burst(f"burst{number}", turns)
                    found[WORKER] = burst.overhead * processor.reference.scale()
                yield size, found
    processor.store.close()


async def _round(processor: Processor, turns: list[Turn], run: str, size: int) -> None:
    now = time.time()
    values = [
        (workload.session_name(run, turn.session).encode(), workload.event(turn, run, now))
        for turn in turns
    ]
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1", max_batch_size=512 * 1024)
    try:
        await processor.run(values, size, NoBroker(producer))
    finally:
        await producer.stop()


def table(found: dict[int, list[dict[str, float]]]) -> str:
    """A row for each part, a column for each batch size."""
    rows = []
    sums = dict.fromkeys(found, 0.0)
    for part, what in PARTS.items():
        cells = []
        for size, rounds in found.items():
            of_part = median([one[part] for one in rounds])
            sums[size] += of_part
            cells.append(f"{of_part:.0f}")
        rows.append([part, what, *cells])
    rows.append(["sum", "", *[f"{total:.0f}" for total in sums.values()]])
    if all(WORKER in one for rounds in found.values() for one in rounds):
        whole = {size: median([one[WORKER] for one in rounds]) for size, rounds in found.items()}
        rest = [f"{whole[size] - sums[size]:.0f}" for size in found]
        rows.append(["Faust", "with Kafka client, acknowledgement and hand-overs", *rest])
        rows.append([WORKER, "", *[f"{of_size:.0f}" for of_size in whole.values()]])
    return markdown.table(["part", "", *[f"batches of {size}" for size in found]], rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turn_cost")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=TURNS, help="in a round")
    parser.add_argument("--sessions", type=int, default=SESSIONS, help="open at a time")
    parser.add_argument("--no-worker", action="store_true", help="only the parts")
    given = parser.parse_args()
    logs.configure("ERROR", LogFormat.CONSOLE)
    turns = workload.turns(given.turns, given.sessions)
    found: dict[int, list[dict[str, float]]] = {size: [] for size in given.batches}
    try:
        with testbed.opened(bundles.DEFAULT_BUNDLE, on_kafka=False) as bed:
            for size, one in measured(
                bed, given.database, turns, given.batches, given.rounds, not given.no_worker
            ):
                found[size].append(one)
    except (RapportError, Unavailable) as problem:
        raise SystemExit(f"error: {problem}") from problem
    tokens = sum(turn.tokens for turn in turns) / len(turns)
    print(
        f"µs of CPU a turn outside the model, {given.database}, {given.sessions} open sessions, "
        f"{tokens:.1f} tokens a turn, medians of {given.rounds} rounds, "
        f"scaled to a machine on which the reference takes {REFERENCE_US:.0f} µs\n"
    )
    print(table(found))


if __name__ == "__main__":
    main()
