"""The agent's order of commit, publish and acknowledgement, with fakes that keep a journal."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from inspect import signature
from types import SimpleNamespace
from typing import Any, cast

import pytest
from faust.types import TP
from structlog.testing import capture_logs

from stream_app.core.pipeline.pipeline import Received, Source, receive
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.ports import Message
from stream_app.errors import ContractError, DatabaseWentBack, StoreUnavailable
from stream_app.settings import DEFAULT_RULES, Settings
from stream_app.store.alerts.rule_sources import RuleFile
from stream_app.worker.agents import TurnAgent
from stream_app.worker.batches import record_decoder
from stream_app.worker.batches.commits import Committed, Outbox
from stream_app.worker.batches.due_work import DueWork
from stream_app.worker.batches.lane import Lane
from stream_app.worker.batches.metrics import Stages, WorkerMetrics
from stream_app.worker.batches.positions import Positions
from stream_app.worker.batches.processor import BatchProcessor
from stream_app.worker.batches.progress import Progress
from stream_app.worker.batches.retries import Retries
from stream_app.worker.batches.session_cache import SessionCache
from stream_app.worker.kafka import app as faust_app
from stream_app.worker.kafka.adaptive_batching import Batching
from stream_app.worker.kafka.app import RapportApp
from stream_app.worker.kafka.consumer import ReadTo
from stream_app.worker.kafka.offsets import OffsetTracker
from stream_app.worker.kafka.publisher import Publisher
from stream_app.worker.upkeep import tasks
from stream_app.worker.upkeep.health import Health, HealthLimits
from stream_app.worker.upkeep.rule_loading import RuleReloader
from stream_app.worker.upkeep.tasks import Chores, Upkeep
from tests.frames import framed
from tests.store.batches import pipeline, process, turn

SETTINGS = Settings()
NOT_AN_EVENT = Received(Source("t", 0, 7), b"\xff raw", ContractError("schema", "no"))


class World:
    """Fake app, producer, consumer, stream and processor; calls are recorded in ``journal``."""

    def __init__(self) -> None:
        self.journal: list[str] = []
        self.reload_baselines: Callable[[], object] = lambda: None
        self.purge_expired: Callable[[datetime], Iterator[Counter[str]]] = lambda _: iter(())
        self.sent: list[tuple[Any, ...]] = []
        self.handled: list[list[Received]] = []
        self.batches: list[list[Any]] = []
        self.admits = True
        self.left: list[Committed] = []
        self.erased_entries: list[int] = []
        self.idle_calls: list[tuple[datetime, list[int]]] = []
        self.due_calls: list[tuple[datetime, datetime, list[int]]] = []
        self.partitions = {TP(SETTINGS.turns_topic, 2), TP("another", 5)}
        self.consumer = self
        self.unacked: set[Any] = set()
        self.offsets = OffsetTracker()
        self.offsets.on_seek({TP("t", 2): None})
        self.ends = {TP(SETTINGS.turns_topic, 2): 0}
        self._committed_offset: dict[TP, int | None] = {TP(SETTINGS.turns_topic, 2): None}
        self.reading: dict[TP, ReadTo] = {}
        self.record_deleted: Callable[..., object] | None = None
        self.cache = SessionCache(9)
        self.outbox = self.positions = self.due = self.retries = self
        self.metrics = WorkerMetrics()
        self.stages = Stages(self.metrics)
        self.batch_max = SETTINGS.batch_max
        self.left_states: list[Committed | None] = [None]
        self.left_calls: list[list[int]] = []
        self.topic_size: int | None = 6
        self.store_error: Exception | None = None
        self.prepare_error: Exception | None = None
        self.stream_error: Exception | None = None
        self.second_prepared = threading.Event()
        self.delivery_error: Exception | None = None
        self.outcome = Committed(process([turn(), turn(1)]), [Message("out", b"s", b"v")], 4)

    def batch(self, *values: bytes) -> None:
        """Add a batch to the stream."""
        first = sum(map(len, self.batches))
        self.batches.append(
            [
                SimpleNamespace(
                    value=value,
                    message=SimpleNamespace(
                        tp=TP("t", 2),
                        topic="t",
                        partition=2,
                        offset=first + i,
                        timestamp=1.5,
                        timestamp_type=0,
                        headers=None,
                        key=b"s",
                    ),
                    ack=lambda n=first + i: self.journal.append(f"ack {n}"),
                )
                for i, value in enumerate(values)
            ]
        )

    async def taken(
        self, admit: Callable[[Any], tuple[TP, str | None]]
    ) -> AsyncGenerator[list[Any], None]:
        for events in self.batches:
            self.journal.append("take")
            for event in events if self.admits else []:
                admit(event)
            yield events
        if self.stream_error is not None:
            await asyncio.sleep(0)  # as a stream does before it fails
            raise self.stream_error

    def prepare(self, records: Iterable[Received]) -> list[Received]:
        if self.prepare_error is not None:
            raise self.prepare_error
        self.journal.append("prepare")
        if self.journal.count("prepare") == 2:
            self.second_prepared.set()
        return list(records)

    def handle(self, batch: list[Received]) -> Committed:
        self.handled.append(batch)
        if self.store_error is not None:
            raise self.store_error
        self.journal.append("committed")
        return self.outcome

    def handle_in_parts(self, batch: list[Received]) -> list[Committed]:
        return [self.handle(batch)]

    def check(self) -> None:
        if self.store_error is not None:
            raise self.store_error

    def stop(self) -> None:
        self.journal.append("end")

    def ping(self) -> None:
        if self.store_error is not None:
            raise self.store_error

    def topic_partitions(self, topic: str) -> int | None:
        assert topic == SETTINGS.turns_topic
        return self.topic_size

    def read_to(self, tp: TP) -> ReadTo | None:
        if tp in self.reading:
            return self.reading[tp]
        end = self.ends.get(tp)
        return None if end is None else ReadTo(self._committed_offset.get(tp) or 0, end, None)

    async def report_deleted(self, tp: TP, first: int, following: int) -> None:
        self.journal.append(f"deleted? {tp.partition} {first} {following}")

    def skip_to(self, ends: Mapping[tuple[str, int], int]) -> None:
        self.journal += [f"skip {end}" for end in ends.values()]

    def mark_published(self, committed: Committed) -> None:
        self.journal.append(f"published {committed.outbox_id}")

    def mark_published_later(self, committed: Committed) -> None:
        self.journal.append(f"published later {committed.outbox_id}")

    def apply_withdrawals(self, now: datetime) -> list[int]:
        if self.store_error is not None:
            raise self.store_error
        return self.erased_entries

    def stored(self, outbox_ids: list[int]) -> list[Committed]:
        messages = [Message("late", b"k", None)]
        return [Committed(BatchResult(), messages, key) for key in outbox_ids]

    def abandoned(self, after: float) -> list[Committed]:
        assert after == tasks.ABANDONED_AFTER
        return self.left

    def flush_idle(self, before: datetime, partitions: list[int]) -> Committed | None:
        if self.store_error is not None:
            raise self.store_error
        self.idle_calls.append((before, partitions))
        return None

    def fire_due(
        self, due: datetime, active_since: datetime, partitions: list[int]
    ) -> Committed | None:
        if self.store_error is not None:
            raise self.store_error
        self.due_calls.append((due, active_since, partitions))
        return self.outcome

    def close_left(self, before: datetime, partitions: list[int]) -> Committed | None:
        self.left_calls.append(partitions)
        return self.left_states.pop(0)

    def assignment(self) -> set[TP]:
        return self.partitions

    async def maybe_start_producer(self) -> "World":
        return self

    def _ensure_producer(self) -> "World":
        return self

    async def partitions_for(self, topic: str) -> set[int]:
        return {0}

    def create_batch(self) -> "RecordBatch":
        return RecordBatch()

    async def send_batch(
        self, records: "RecordBatch", topic: str, *, partition: int
    ) -> asyncio.Future[None]:
        assert partition == 0
        [record] = records.appended
        return await self.send(topic, *record, None, None, None)

    async def send(self, *record: Any) -> asyncio.Future[None]:
        self.sent.append(record)
        self.journal.append(f"send {record[0]}")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def deliver() -> None:
            if self.delivery_error is not None:
                future.set_exception(self.delivery_error)
            else:
                self.journal.append(f"delivered {record[0]}")
                future.set_result(None)

        loop.call_later(0.02, deliver)
        return future

    async def commit(self) -> None:
        self.journal.append("offsets")

    async def crash(self, problem: Exception) -> None:
        self.journal.append(f"crash {type(problem).__name__}")

    async def wait_until_stopped(self) -> None:
        """Return immediately: to Faust, a crashed service is a stopped one."""

    def agent(self) -> TurnAgent:
        return agent_of(self, self)


def appended(at: datetime, partition: int) -> Received:
    source = Source(SETTINGS.turns_topic, partition, 0)
    return Received(source, b"", ContractError("schema", "no"), at, None, at)


class RecordBatch:
    """A fake record batch of one partition."""

    def __init__(self) -> None:
        self.appended: list[tuple[bytes, bytes]] = []

    def append(
        self, *, key: bytes, value: bytes, timestamp: float | None, headers: list[Any]
    ) -> object:
        assert timestamp is None, "the record gets the time of sending"
        self.appended.append((key, value))
        return self

    def close(self) -> None:
        """Close the batch."""


def agent_of(
    app: Any, processor: Any, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> TurnAgent:
    async def finish(client: object) -> None:
        """Nothing is unfinished."""

    chores = Chores(
        RuleReloader(RuleFile(DEFAULT_RULES), pipeline().environment.alerting, WorkerMetrics()),
        getattr(processor, "reload_baselines", lambda: None),
        getattr(processor, "purge_expired", lambda now: iter(())),
        getattr(processor, "update_rollups", lambda now: iter(())),
        getattr(processor, "apply_withdrawals", lambda now: []),
        finish,
        getattr(processor, "close_left", lambda before, partitions: None),
    )
    progress = Progress(app, SETTINGS.turns_topic, now)
    publisher = Publisher(app, SETTINGS.dead_letter_topic, processor.stages.tracing)
    lane = Lane(processor, publisher)
    upkeep = Upkeep(app, SETTINGS, lane, progress, Health(HealthLimits()), chores)
    return TurnAgent(app, lane, progress, upkeep)


async def run(agent: TurnAgent, name: str) -> None:
    """Run a task once, as its timer does."""
    [task] = [task for task in agent._upkeep.tasks() if task.name == name]
    await task.run(agent.lane.exclusive)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(Batching, "batches", lambda _, stream, admit: stream.taken(admit))
    return World()


async def test_a_batch_is_committed_then_published_then_acknowledged(world: World) -> None:
    world.batch(turn(), turn(1))
    await world.agent()._consume(world)
    assert world.journal == [
        "take",
        "prepare",
        "committed",
        "send out",
        "delivered out",
        "published 4",
        "ack 0",
        "ack 1",
        "offsets",
    ]
    assert world.sent == [("out", b"s", b"v", None, None, None)]


async def test_the_next_batch_is_prepared_while_one_is_processed(world: World) -> None:
    for seq in range(3):
        world.batch(turn(seq))
    handle, met = world.handle, []

    def first_waits(batch: list[Received]) -> Committed:
        if not met:
            met.append(world.second_prepared.wait(timeout=30))
        return handle(batch)

    world.handle = first_waits  # type: ignore[method-assign]
    await world.agent()._consume(world)
    assert met == [True], "the second batch is prepared before the first is finished"
    worked_on = [step for step in world.journal if step in ("committed", "offsets")]
    assert worked_on[:2] == ["committed", "offsets"], (
        "the second batch is processed after the first"
    )
    assert worked_on.count("committed") == 3
    assert worked_on[-1] == "offsets", "the last batch is always acknowledged"
    before = world.journal[: world.journal.index("offsets")]
    assert before.count("take") == 2, "no third batch is taken"


async def test_the_current_batch_finishes_if_the_next_cannot_be_prepared(world: World) -> None:
    agent = world.agent()
    agent.lane.on_commit = lambda result: setattr(world, "prepare_error", RuntimeError("no memory"))
    world.outcome = Committed(world.outcome.result, [], None)
    for seq in range(3):
        world.batch(turn(seq))
    await agent._consume(world)
    assert world.journal.count("crash RuntimeError") == 1
    acknowledged = [step for step in world.journal if step.startswith("ack")]
    assert acknowledged == [f"ack {i}" for i in range(world.journal.count("committed"))]


async def test_records_have_their_offset_and_production_time(world: World) -> None:
    world.batch(turn(), None)  # type: ignore[arg-type]  # a tombstone
    await world.agent()._consume(world)
    [[record, tombstone]] = world.handled
    assert record.raw == turn()
    assert (record.source.topic, record.source.partition, record.source.offset) == ("t", 2, 0)
    assert record.produced_at == datetime.fromtimestamp(1.5, UTC)
    assert tombstone.raw == b""


async def test_records_are_decoded_in_the_preparing_thread(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def noted(*args: Any, **options: Any) -> Received:
        threads.append(threading.current_thread().name)
        return receive(*args, **options)

    monkeypatch.setattr(record_decoder, "receive", noted)
    world.batch(turn(), b"broken")
    await world.agent()._consume(world)
    assert [name.split("_")[0] for name in threads] == ["prepare", "prepare"]


async def test_nothing_is_acknowledged_when_the_processor_gives_up(world: World) -> None:
    world.store_error = StoreUnavailable("away")
    world.batch(turn())
    world.batch(turn(1))
    await world.agent()._consume(world)
    assert world.journal.count("crash StoreUnavailable") == 1
    assert set(world.journal) == {"take", "prepare", "crash StoreUnavailable"}


async def test_nothing_is_acknowledged_when_publishing_fails(world: World) -> None:
    world.delivery_error = ConnectionError("no broker")
    world.batch(turn())
    await world.agent()._consume(world)
    assert world.journal == ["take", "prepare", "committed", "send out", "crash ConnectionError"]


@pytest.mark.parametrize(
    ("problem", "journal"),
    [
        (None, []),
        (StoreUnavailable("away"), []),
        (DatabaseWentBack(4), ["crash DatabaseWentBack"]),
    ],
)
async def test_an_older_database_crashes_the_worker_without_new_events(
    world: World, problem: Exception | None, journal: list[str]
) -> None:
    world.store_error = problem
    await run(world.agent(), "positions")
    assert world.journal == journal


async def test_a_broken_stream_crashes_the_worker_and_raises_nothing(
    world: World,
) -> None:
    world.batch(turn())
    world.stream_error = RuntimeError("of Faust")
    await world.agent()._consume(world)
    assert world.journal.count("crash RuntimeError") == 1


async def test_a_batch_after_skipped_events_is_not_processed(world: World) -> None:
    world.batch(turn())
    world.batch(turn(1))
    world.batches[1][0].message.offset = 7
    await world.agent()._consume(world)
    assert "crash EventsLeftOut" in world.journal
    assert world.journal.count("prepare") == 1
    assert world.journal.count("committed") == world.journal.count("offsets") == 1


async def test_a_batch_moves_the_position_only_to_the_oldest_event_that_waits(
    world: World,
) -> None:
    world.batch(turn(), turn(1), turn(session_id="quiet"), turn(2), turn(3))
    [noisy, second, quiet, *rest] = world.batches.pop()
    world.batches = [[noisy, quiet], [second, *rest]]
    agent = world.agent()
    done: list[int | None] = []
    agent.lane.on_commit = lambda _: done.append(world.offsets.committable(TP("t", 2)))
    for event in (noisy, second, quiet, *rest):
        agent._admit(event)
    world.admits = False
    await agent._consume(world)
    assert [[each.position for each in batch] for batch in world.handled] == [[1, 1], [3, 4, 5]]
    assert done == [None, 1]
    assert world.offsets.committable(TP("t", 2)) == 5


def test_events_are_admitted_by_partition_and_session(world: World) -> None:
    world.batch(turn(session_id="a"), framed(7, turn(session_id="b")), b"{", None)  # type: ignore[arg-type]
    agent = world.agent()
    place = TP("t", 2)
    admitted = [agent._admit(event) for event in world.batches[0]]
    assert admitted == [(place, "a"), (place, "b"), (place, None), (place, None)]


def test_a_stop_or_a_rebalance_does_not_wait_for_events_in_no_batch(world: World) -> None:
    world.batch(turn(), turn(1))
    agent = world.agent()
    taken, waiting = world.batches[0]
    world.unacked = {id(event.message) for event in (taken, waiting)}
    agent._admit(taken)
    agent._batching._line.add(*agent._admit(waiting), waiting)
    waiting.message = id(waiting.message)
    agent._leave_waiting()
    assert world.unacked == {id(taken.message)}


async def test_cancellation_is_not_a_crash_and_acknowledges_nothing(world: World) -> None:
    world.batch(turn())
    running = asyncio.create_task(world.agent()._consume(world))
    while "send out" not in world.journal:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert world.journal == ["take", "prepare", "committed", "send out"]


async def test_a_dead_letter_has_the_original_bytes_and_the_reason_in_a_header(
    world: World,
) -> None:
    world.outcome = Committed(pipeline().process([NOT_AN_EVENT], {}), [], None)
    world.batch(b"\xff raw")
    await world.agent()._consume(world)
    [(topic, key, value, _, _, headers)] = world.sent
    assert (topic, key, value) == (SETTINGS.dead_letter_topic, b"t:0:7", b"\xff raw")
    assert b'"reason":"schema"' in dict(headers)["rapport-dead-letter"]
    assert world.journal[-4:] == [
        f"send {topic}",
        f"delivered {topic}",
        "ack 0",
        "offsets",
    ]


async def test_commits_are_noted_after_publishing(world: World) -> None:
    agent = world.agent()
    agent.lane.on_commit = lambda result: world.journal.append(f"called {len(result.turns)}")
    world.batch(turn())
    await agent._consume(world)
    assert world.journal.index("published 4") < world.journal.index("called 2")
    assert world.journal.index("called 2") < world.journal.index("ack 0")


async def test_idleness_is_measured_by_the_clock_and_not_by_event_times(world: World) -> None:
    """A producer with a fast clock does not make other sessions idle."""
    agent = world.agent()
    ahead = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    world.outcome = Committed(process([turn(occurred_at=ahead), turn(1)]), [], None)
    world.batch(turn(occurred_at=ahead))
    await agent._consume(world)
    await run(agent, "idle")
    [(before, partitions)] = world.idle_calls
    assert abs(datetime.now(UTC) - SETTINGS.idle_after - before) < timedelta(seconds=30)
    assert partitions == [2]


async def test_idleness_in_a_lagging_partition_is_measured_by_its_watermark(
    world: World,
) -> None:
    agent = world.agent()
    world.ends = {TP(SETTINGS.turns_topic, 2): 7}
    await run(agent, "idle")
    assert world.idle_calls == [], "the partition has not been read yet"
    world.batch(turn(), turn(1))
    await agent._consume(world)
    await run(agent, "idle")
    appended = datetime.fromtimestamp(1.5, UTC)
    assert world.idle_calls == [(appended - SETTINGS.idle_after, [2])]


async def test_timers_measure_by_the_given_clock_and_not_by_that_of_the_machine(
    world: World,
) -> None:
    """A machine 40 days behind would never fire a rule about silence, one ahead too early."""
    right = datetime.now(UTC) + timedelta(days=40)
    agent = agent_of(world, world, lambda: right)
    world.ends = {TP(SETTINGS.turns_topic, 2): 0}
    await run(agent, "idle")
    assert world.idle_calls == [(right - SETTINGS.idle_after, [2])]
    await run(agent, "tick")
    assert world.due_calls == [(right - tasks.TICK_AFTER, right - SETTINGS.idle_after, [2])]


async def test_a_worker_without_partitions_flushes_no_session(world: World) -> None:
    world.partitions = {TP("another", 5)}
    await run(world.agent(), "idle")
    assert world.idle_calls == []


async def test_abandoned_messages_are_published_and_then_deleted(world: World) -> None:
    world.left = [Committed(BatchResult(), [Message("late", b"k", b"v")], 9)]
    await run(world.agent(), "idle")
    assert world.journal == ["send late", "delivered late", "published 9"]


async def test_consumers_are_notified_of_sessions_erased_after_a_withdrawal(world: World) -> None:
    agent = world.agent()
    await run(agent, "withdrawals")
    assert world.journal == []
    world.erased_entries = [9]
    await run(agent, "withdrawals")
    assert world.journal == ["send late", "delivered late", "published 9"]


async def test_a_failing_withdrawal_does_not_end_the_worker(world: World) -> None:
    world.store_error = StoreUnavailable("away")
    agent = world.agent()
    await run(agent, "withdrawals")
    assert world.journal == []


async def test_a_failing_idle_check_does_not_end_the_worker(world: World) -> None:
    world.store_error = StoreUnavailable("away")
    agent = world.agent()
    await run(agent, "idle")
    assert world.idle_calls == []
    world.store_error = None
    await run(agent, "idle")
    assert len(world.idle_calls) == 1


async def test_time_rules_fire_in_caught_up_partitions_only(world: World) -> None:
    agent = world.agent()
    world.partitions = {TP(SETTINGS.turns_topic, p) for p in (1, 2, 4)}
    world.ends = dict.fromkeys(world.partitions, 7)
    world._committed_offset = {
        TP(SETTINGS.turns_topic, 1): 7,
        TP(SETTINGS.turns_topic, 2): 6,
        TP(SETTINGS.turns_topic, 4): None,
    }
    now = datetime.now(UTC)
    for partition, at in ((2, now), (4, now - timedelta(minutes=1))):
        agent._progress.processed([appended(at, partition)])
    await run(agent, "tick")
    [(due, active_since, partitions)] = world.due_calls
    assert partitions == [1, 2], (
        "partition 2 is read to a current record, partition 4 is a minute behind"
    )
    assert abs(datetime.now(UTC) - tasks.TICK_AFTER - due) < timedelta(seconds=30)
    assert due - active_since == SETTINGS.idle_after - tasks.TICK_AFTER
    assert world.journal == ["send out", "delivered out", "published 4"]


async def test_no_time_rule_fires_before_the_log_is_read(world: World) -> None:
    agent = world.agent()
    world.ends = {TP(SETTINGS.turns_topic, 2): 7}
    await run(agent, "tick")
    world.ends = {}
    await run(agent, "tick")
    assert world.due_calls == []


async def test_a_failing_time_rule_check_does_not_end_the_worker(world: World) -> None:
    world.store_error = StoreUnavailable("away")
    agent = world.agent()
    await run(agent, "tick")
    world.store_error = None
    await run(agent, "tick")
    assert len(world.due_calls) == 1


async def test_a_rebalance_clears_the_watermarks(
    world: World,
) -> None:
    agent = world.agent()
    world.ends = {TP(SETTINGS.turns_topic, 2): 7}
    world.batch(turn(), turn(1))
    await agent._consume(world)
    assert agent._progress.watermarks() == {2: datetime.fromtimestamp(1.5, UTC)}
    await agent._on_revoked()
    assert agent._progress.watermarks() == {}


async def test_baselines_are_reloaded_periodically(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.reload_baselines = lambda: world.journal.append("baselines")
    agent = world.agent()
    await run(agent, "rules")
    assert world.journal == []
    monkeypatch.setattr(tasks, "BASELINES_EVERY", 0.0)
    await run(agent, "rules")
    assert world.journal == ["baselines"]


async def test_revoked_partitions_invalidate_the_cache(world: World) -> None:
    forgotten: list[bool] = []
    world.cache.invalidate = lambda: forgotten.append(True)  # type: ignore[method-assign]
    app = faust_app.create(SETTINGS)
    agent_of(app, world).attach()
    await app.on_partitions_revoked.send({TP("t", 1)})
    assert forgotten == [True]


async def test_a_rebalance_changes_readiness(world: World) -> None:
    agent = world.agent()
    assert "joining the consumer group" in agent.health.not_ready()
    await agent._on_assigned({TP(SETTINGS.turns_topic, 1)})
    await run(agent, "health")
    assert agent.health.not_ready() == []
    await agent._on_revoked({TP(SETTINGS.turns_topic, 1)})
    assert agent.health.not_ready() == ["joining the consumer group"]


async def test_a_standby_worker_is_ready_and_one_without_a_topic_is_not(world: World) -> None:
    agent = world.agent()
    world.partitions = {TP("another", 5)}
    await agent._on_assigned()
    await run(agent, "health")
    assert agent.health.not_ready() == []
    world.topic_size = None
    await run(agent, "health")
    assert agent.health.not_ready() == ["the topic of the turns does not exist"]


async def test_readiness_fails_while_the_store_does_not_answer(world: World) -> None:
    agent = world.agent()
    await agent._on_assigned()
    world.store_error = StoreUnavailable("the database does not answer")
    await run(agent, "health")
    assert agent.health.not_ready() == ["store: the database does not answer"]
    world.store_error = None
    await run(agent, "health")
    assert agent.health.not_ready() == []


async def test_lag_is_the_number_of_uncommitted_events(world: World) -> None:
    agent = world.agent()
    await agent._on_assigned()
    world.partitions = {TP(SETTINGS.turns_topic, p) for p in (1, 4)}
    world.ends = dict.fromkeys(world.partitions, 7)
    world._committed_offset = {TP(SETTINGS.turns_topic, 1): 5, TP(SETTINGS.turns_topic, 4): None}
    await run(agent, "health")
    value = agent.metrics.registry.get_sample_value
    assert value("rapport_lag_events", {"partition": "1"}) == 2
    assert value("rapport_lag_events", {"partition": "4"}) == 7
    world.ends = {}
    await run(agent, "health")
    assert agent.health.not_ready() == ["lag not known yet"]


@pytest.mark.parametrize(
    ("read_to", "lag"),
    [
        (ReadTo(9, 9, 7), 0),  # two markers after the last event
        (ReadTo(9, 9, None), 0),  # all deleted
        (ReadTo(9, 8, 7), 0),  # the end is that of an earlier fetch
        (ReadTo(9, 9, 9), 2),  # delivered, but not finished
        (ReadTo(7, 9, 7), 2),
        (ReadTo(8, 10, 8), 3),
    ],
)
def test_lag_counts_events_and_not_what_lies_between_them(
    world: World, read_to: ReadTo, lag: int
) -> None:
    place = TP(SETTINGS.turns_topic, 2)
    world.offsets.on_seek({place: 7})
    world.reading = {place: read_to}
    assert faust_app.lag_of(cast("RapportApp", world), SETTINGS.turns_topic) == {2: lag}


async def test_the_position_behind_the_last_event_is_stored_and_committed(world: World) -> None:
    agent = world.agent()
    place, other = TP(SETTINGS.turns_topic, 2), TP(SETTINGS.turns_topic, 3)
    world.partitions = {place, other}
    world.offsets.on_seek({place: 7, other: 7})
    world.reading = {place: ReadTo(9, 9, 7), other: ReadTo(9, 9, 8)}
    await run(agent, "positions")
    assert world.journal == ["deleted? 2 7 9", "skip 9", "offsets"]
    assert (world.offsets.committable(place), world.offsets.committable(other)) == (9, None)
    assert world.offsets.record_fetch(place, 9) is None, "the next event follows without a gap"
    assert world.offsets.admit(place, 9) == 0


async def test_deleted_events_are_logged_counted_and_stored(world: World) -> None:
    agent = world.agent()
    world.record_deleted = lambda *found: world.journal.append(str(found))
    with capture_logs() as logged:
        await agent._report_deleted(TP("t", 2), 4, 10)
    [line] = logged
    assert (line["log_level"], line["events"]) == ("warning", 6)
    assert world.journal == ["(('t', 2), 4, 10)"]
    value = agent.metrics.registry.get_sample_value
    assert value("rapport_deleted_unread_events_total") == 6


async def test_deleted_events_are_reported_without_the_database(world: World) -> None:
    def fail(*_: object) -> None:
        raise StoreUnavailable("away")

    world.record_deleted = fail
    with capture_logs() as logged:
        await world.agent()._report_deleted(TP("t", 2), 4, 10)
    assert [line["event"] for line in logged] == ["log.deleted", "log.deleted_not_stored"]


async def test_states_of_other_bundles_are_closed_until_none_is_left(world: World) -> None:
    world.left_states = [world.outcome, Committed(BatchResult(), [], None), None]
    await run(world.agent(), "left")
    assert world.left_calls == [[2]] * 3
    assert [step for step in world.journal if step.startswith("published")] == ["published 4"]


async def test_a_worker_is_ready_soon_after_the_lag_is_known(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "HEALTH_EVERY", 0.1)
    agent = world.agent()
    world.partitions = {TP(SETTINGS.turns_topic, 0)}
    world._committed_offset = {TP(SETTINGS.turns_topic, 0): None}
    await agent._on_assigned()
    assert "lag not known yet" in agent.health.not_ready()
    world.ends = {TP(SETTINGS.turns_topic, 0): 0}
    assert agent._reporting is not None
    await agent._reporting
    assert agent.health.not_ready() == []


async def test_while_batches_follow_each_other_outbox_rows_are_deleted_with_the_next_commit(
    world: World,
) -> None:
    agent = world.agent()
    agent.lane.next_waits = True
    await agent.lane.publish(world.outcome)
    agent.lane.next_waits = False
    await agent.lane.publish(world.outcome)
    assert [step for step in world.journal if step.startswith("published")] == [
        "published later 4",
        "published 4",
    ]


async def test_the_agent_reads_raw_turns_one_batch_at_a_time(world: World) -> None:
    app = faust_app.create(SETTINGS)
    agent_of(app, world).attach()
    [agent] = app.agents.values()
    assert list(agent.channel.topics) == [SETTINGS.turns_topic]
    assert (agent.channel.key_serializer, agent.channel.value_serializer) == ("raw", "raw")
    assert agent.concurrency == 1


def test_the_fake_processor_has_the_real_signatures() -> None:
    for real in (
        BatchProcessor.handle_in_parts,
        BatchProcessor.ping,
        DueWork.flush_idle,
        DueWork.fire_due,
        Outbox.abandoned,
        Outbox.mark_published,
        Outbox.mark_published_later,
        Positions.check,
        Retries.stop,
    ):
        fake: Callable[..., Any] = getattr(World, real.__name__)
        assert list(signature(real).parameters) == list(signature(fake).parameters)


async def test_expired_data_is_purged_in_steps(world: World) -> None:
    pieces = [Counter({"texts": 3}), Counter({"texts": 2, "sessions": 1})]
    asked: list[datetime] = []

    def purge_expired(now: datetime) -> Iterator[Counter[str]]:
        asked.append(now)
        yield from pieces

    world.purge_expired = purge_expired
    agent = world.agent()
    await run(agent, "outdated")
    assert [now.tzinfo for now in asked] == [UTC]
    removed = {
        sample.labels["what"]: sample.value
        for metric in agent.metrics.outdated.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    }
    assert removed == {"texts": 5.0, "sessions": 1.0}


async def test_a_failing_purge_does_not_end_the_worker(world: World) -> None:
    def purge_expired(_: datetime) -> Iterator[Counter[str]]:
        yield Counter({"texts": 1})
        raise StoreUnavailable("away")

    world.purge_expired = purge_expired
    agent = world.agent()
    await run(agent, "outdated")
    assert world.journal == []
    assert agent.metrics.outdated.labels("texts")._value.get() == 1
