"""The consumer seeks back for records that Faust skips; a script replaces Faust."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.errors import IllegalStateError, KafkaConnectionError
from faust.transport.drivers.aiokafka import Consumer
from faust.types import TP
from structlog.testing import capture_logs

from stream_app.errors import StoreUnavailable
from stream_app.settings import Settings
from stream_app.store.stream.log_positions import StartOffsets
from stream_app.worker.kafka import app as faust_app
from stream_app.worker.kafka import consumer as consumer_module
from stream_app.worker.kafka.app import RapportApp
from stream_app.worker.kafka.consumer import OrderedConsumer, rate_limited

P0, P1 = TP("dialogue.turns", 0), TP("dialogue.turns", 1)


class Script:
    """The scripted results of Faust's consumer, and the calls that it received."""

    consumer: OrderedConsumer

    def __init__(self, committed: dict[TP, int | None]) -> None:
        self.committed = committed
        self.fetches: list[list[tuple[TP, int]]] = []
        self.seeks: list[Mapping[TP, int] | str] = []
        self.taken_away = False
        self.starts: dict[TP, int] = {}
        self.broker_away = False

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:
        for tp, offset in self.fetches.pop(0):
            yield tp, SimpleNamespace(offset=offset)

    async def perform_seek(self) -> None:
        self.seeks.append("committed")
        self.consumer._committed_offset.update(self.committed)

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        self.seeks.append(partitions)
        if self.taken_away:
            raise IllegalStateError

    async def earliest_offsets(self, tp: TP) -> Mapping[TP, int]:
        if self.broker_away:
            raise KafkaConnectionError
        return {tp: self.starts.get(tp, 0)}

    def assignment(self) -> set[TP]:
        return set(self.committed)


@pytest.fixture
def script() -> Script:
    return Script({P0: 5, P1: None})


@pytest.fixture
def consumer(script: Script, monkeypatch: pytest.MonkeyPatch) -> OrderedConsumer:
    monkeypatch.setattr(Consumer, "getmany", script.getmany)
    monkeypatch.setattr(Consumer, "perform_seek", script.perform_seek)
    monkeypatch.setattr(Consumer, "seek_wait", script.seek_wait)
    monkeypatch.setattr(Consumer, "assignment", script.assignment)
    monkeypatch.setattr(Consumer, "earliest_offsets", script.earliest_offsets)
    consumer = faust_app.create(Settings()).consumer
    assert isinstance(consumer, OrderedConsumer)
    script.consumer = consumer
    consumer._thread.thread_loop.close()  # never started, so it must be removed here
    return consumer


async def handed_out(consumer: OrderedConsumer) -> list[tuple[TP, int]]:
    return [(tp, message.offset) async for tp, message in consumer.getmany(1.0)]


async def test_records_fetched_before_the_seek_are_read_again_after_it(
    consumer: OrderedConsumer, script: Script
) -> None:
    script.fetches = [[(P0, 9)], [(P0, 5), (P1, 0)]]
    assert await handed_out(consumer) == []
    assert script.seeks == ["committed"]
    assert await handed_out(consumer) == [(P0, 5), (P1, 0)]


async def test_a_gap_causes_one_seek_back_in_its_partition_only(
    consumer: OrderedConsumer, script: Script
) -> None:
    await consumer.perform_seek()
    script.fetches = [[(P0, 5), (P0, 8), (P0, 9), (P1, 0)], [(P0, 8), (P0, 9)]]
    assert await handed_out(consumer) == [(P0, 5), (P1, 0)]
    assert script.seeks == ["committed", {P0: 6}]
    assert await handed_out(consumer) == [(P0, 8), (P0, 9)]
    assert len(script.seeks) == 2


async def test_a_partition_without_a_committed_offset_is_read_from_its_start(
    consumer: OrderedConsumer, script: Script
) -> None:
    await consumer.perform_seek()
    script.fetches = [[(P1, 40)], [(P1, 0)]]
    assert await handed_out(consumer) == []
    assert script.seeks[-1] == {P1: 0}
    assert await handed_out(consumer) == [(P1, 0)]


@pytest.mark.parametrize(
    ("start", "deleted"),
    [(0, []), (6, []), (7, [(6, 7)]), (8, [(6, 8)]), (20, [(6, 8)])],
)
async def test_a_gap_before_the_start_of_the_log_is_reported_once_as_deleted(
    consumer: OrderedConsumer, script: Script, start: int, deleted: list[tuple[int, int]]
) -> None:
    reported: list[tuple[int, int]] = []

    async def report(tp: TP, first: int, until: int) -> None:
        reported.append((first, until))

    cast("RapportApp", consumer.app).on_deleted = report
    script.starts = {P0: start}
    await consumer.perform_seek()
    script.fetches = [[(P0, 5), (P0, 8)], [(P0, 8)], [(P0, 8)]]
    await handed_out(consumer)
    assert await handed_out(consumer) == [(P0, 8)]
    await consumer.perform_seek()
    script.committed = {P0: 6}
    await consumer.perform_seek()
    await handed_out(consumer)
    assert reported == deleted


async def test_a_gap_that_cannot_be_examined_does_not_stop_the_reading(
    consumer: OrderedConsumer, script: Script
) -> None:
    script.broker_away = True
    await consumer.perform_seek()
    script.fetches = [[(P0, 8)], [(P0, 8)]]
    await handed_out(consumer)
    with capture_logs() as logged:
        assert await handed_out(consumer) == [(P0, 8)]
    assert [line["event"] for line in logged] == ["log.gap_unexplained"]


async def test_a_partition_revoked_during_the_seek_is_ignored(
    consumer: OrderedConsumer, script: Script
) -> None:
    await consumer.perform_seek()
    script.taken_away = True
    script.fetches = [[(P0, 9), (P0, 10)]]
    assert await handed_out(consumer) == []
    assert not consumer.offsets.is_known(P0)


async def test_offsets_that_faust_acknowledges_unasked_are_not_committed(
    consumer: OrderedConsumer,
) -> None:
    await consumer.perform_seek()
    consumer._acked[P0] = [5]  # as when a stream skips an event during a rebalance
    assert consumer._new_offset(P0) is None
    assert consumer._acked[P0] == []
    consumer.offsets.finish(P0, 6)
    assert consumer._new_offset(P0) == 6


async def test_fair_order_leaves_nothing_in_fausts_books(consumer: OrderedConsumer) -> None:
    """Faust drops one run of offsets for each commit; fair order makes hundreds of runs."""
    await consumer.perform_seek()
    consumer._acked[P0] = [5, 7, 9, 30]
    consumer._acked_index[P0] = {5, 7, 9, 30}
    consumer.offsets.finish(P0, 6)
    assert consumer._new_offset(P0) == 6
    assert (consumer._acked[P0], consumer._acked_index[P0]) == ([], set())


async def test_waiting_events_are_left_before_a_stop_or_a_rebalance_waits(
    consumer: OrderedConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    async def wait(_: object) -> None:
        calls.append("waits")

    monkeypatch.setattr(Consumer, "wait_empty", wait)
    app = cast("RapportApp", consumer.app)
    await consumer.wait_empty()
    app.before_wait = lambda: calls.append("leaves")
    await consumer.wait_empty()
    assert calls == ["waits", "leaves", "waits"]


async def test_what_is_no_event_is_committed_although_nobody_acknowledges_it(
    consumer: OrderedConsumer, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that takes over a partition that ends in a transaction's marker reads no event."""
    committed: dict[TP, int] = {}

    async def commit(_: object, offsets: Mapping[TP, int]) -> bool:
        committed.update(offsets)
        return True

    async def flushed(*_: object) -> None:
        """Nothing is in flight."""

    monkeypatch.setattr(Consumer, "_commit", commit)
    monkeypatch.setattr(type(consumer.app.producer), "flush", flushed)
    await consumer.perform_seek()
    consumer.offsets.skip_to(P0, 6)
    consumer.offsets.finish(P0, 6)
    assert await consumer.force_commit()
    assert committed == {P0: 6}
    assert not await consumer.force_commit({P1})
    # A rebalance: Faust forgets what it has committed. The topic may have been recreated since.
    consumer.offsets.on_revoked()
    for known in (consumer._committed_offset, consumer._acked, consumer._acked_index):
        known.clear()
    assert not await consumer.force_commit()


async def test_a_record_that_need_not_wait_is_delivered_without_a_task(
    consumer: OrderedConsumer, script: Script
) -> None:
    taken: list[int] = []

    async def take(message: Any) -> None:
        taken.append(message.offset)

    consumer.callback = take
    await consumer.perform_seek()
    consumer._read_offset[P0] = 5
    consumer.flow_active = True
    consumer.app.flow_control.resume()
    script.fetches = [[(P0, 5), (P0, 6)], [(P0, 7), (P1, 0)]]
    assert await handed_out(consumer) == []
    consumer.app.flow_control.suspend()
    assert await handed_out(consumer) == [(P0, 7), (P1, 0)]
    assert taken == [5, 6]
    assert consumer._read_offset[P0] == 6


async def test_a_record_waits_while_the_streams_buffer_is_full(
    consumer: OrderedConsumer, script: Script
) -> None:
    channel = consumer.app.topic("dialogue.turns")
    channel.maxsize = 1
    consumer.app.topics._tp_index[P0].add(channel)
    consumer.callback = lambda message: channel.queue.put(message.offset)
    await consumer.perform_seek()
    consumer._read_offset[P0] = 5
    consumer.flow_active = True
    consumer.app.flow_control.resume()
    script.fetches = [[(P0, 5), (P0, 6)]]
    assert await handed_out(consumer) == [(P0, 6)]


def never() -> bool:
    return False


class Broker:
    """A fake broker that answers fetches with or without records and records the calls."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, float]] = []

    async def fetch(self, assignment: Any, node: int, request: Any) -> bool:
        assert (assignment, request) == ("assignment", "request")
        self.asked.append((node, time.monotonic()))
        return self.answers.pop(0)


async def test_a_fetch_waits_only_after_one_that_returned_records() -> None:
    broker = Broker(False, False, True, True)
    fetch = rate_limited(broker.fetch, 0.2, never)
    found = [await fetch("assignment", 1, "request") for _ in range(4)]
    assert found == [False, False, True, True]
    times = [at for _, at in broker.asked]
    assert times[3] - times[2] >= 0.2
    assert times[2] - times[0] < 0.2


async def test_brokers_do_not_wait_for_each_other() -> None:
    broker = Broker(True, True)
    fetch = rate_limited(broker.fetch, 60.0, never)
    async with asyncio.timeout(30.0):
        assert [await fetch("assignment", node, "request") for node in (1, 2)] == [True, True]


async def test_nothing_is_fetched_while_a_whole_batch_is_pending() -> None:
    broker, answers = Broker(True), [True, True, False]
    fetch = rate_limited(broker.fetch, 0.02, lambda: answers.pop(0))
    assert await fetch("assignment", 1, "request") is True
    assert answers == []


async def test_a_stalled_batch_delays_fetching_for_a_limited_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumer_module, "MAX_FETCH_DELAY", 0.1)
    broker = Broker(True)
    async with asyncio.timeout(30.0):
        assert (
            await rate_limited(broker.fetch, 0.02, lambda: True)("assignment", 1, "request") is True
        )


async def test_a_fetch_cancelled_while_waiting_returns_no_records() -> None:
    broker = Broker(True)
    fetch = rate_limited(broker.fetch, 60.0, never)
    await fetch("assignment", 1, "request")
    waiting = asyncio.ensure_future(fetch("assignment", 1, "request"))
    await asyncio.sleep(0.01)
    waiting.cancel()
    assert await waiting is False
    assert len(broker.asked) == 1


async def test_the_consumer_seeks_back_to_the_databases_position(
    consumer: OrderedConsumer, script: Script
) -> None:
    """After the restore of an older database, the group is ahead of it."""
    asked: list[Mapping[Any, int | None]] = []

    def beginning(committed: Mapping[Any, int | None]) -> StartOffsets:
        asked.append(committed)
        return StartOffsets({}, {tuple(P0): 2}, {})

    consumer.app.find_start = beginning  # type: ignore[attr-defined]
    await consumer.perform_seek()
    assert asked == [{tuple(P0): 5, tuple(P1): None}]
    assert script.seeks == ["committed", {P0: 2}]
    assert consumer._committed_offset[P0] == 2
    script.fetches = [[(P0, 2), (P1, 0)]]
    assert await handed_out(consumer) == [(P0, 2), (P1, 0)]


async def test_the_worker_crashes_if_the_database_does_not_answer(
    consumer: OrderedConsumer, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed: list[Exception] = []

    async def crash(problem: Exception) -> None:
        crashed.append(problem)

    def away(_: object) -> StartOffsets:
        raise StoreUnavailable("away")

    consumer.app.find_start = away  # type: ignore[attr-defined]
    monkeypatch.setattr(consumer.app, "crash", crash)
    await consumer.perform_seek()
    assert [str(problem) for problem in crashed] == ["away"]
    assert not consumer.offsets.is_known(P0)


async def test_a_recreated_topic_is_read_from_its_start(
    consumer: OrderedConsumer, script: Script
) -> None:
    await consumer.perform_seek()
    script.fetches = [[(P0, 0), (P0, 1)]]
    assert await handed_out(consumer) == [(P0, 0), (P0, 1)]
    assert consumer._read_offset[P0] is None, "otherwise Faust would drop earlier records"
    consumer.offsets.finish(P0, 2)
    assert consumer._new_offset(P0) == 2


async def test_a_recreated_topic_with_old_records_in_progress_crashes_the_worker(
    consumer: OrderedConsumer, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed: list[Exception] = []

    async def crash(problem: Exception) -> None:
        crashed.append(problem)

    monkeypatch.setattr(consumer.app, "crash", crash)
    await consumer.perform_seek()
    script.fetches = [[(P0, 5)], [(P0, 0), (P0, 1)]]
    assert await handed_out(consumer) == [(P0, 5)]
    assert await handed_out(consumer) == []
    [problem] = crashed
    assert "deleted and recreated" in str(problem)


async def test_the_topic_is_known_to_a_standby_worker_that_does_not_lead_the_group(
    consumer: OrderedConsumer,
) -> None:
    """The coordinator's snapshot, which Faust reads, is empty in all members but the leader."""
    assert consumer.topic_partitions(P0.topic) is None
    known: dict[str, set[int]] = {}
    thread: Any = consumer._thread
    thread._consumer = SimpleNamespace(
        partitions_for_topic=known.get, _coordinator=SimpleNamespace(_metadata_snapshot={})
    )
    assert consumer.topic_partitions(P0.topic) is None
    known[P0.topic] = {0, 1}
    assert consumer.topic_partitions(P0.topic) == 2
