"""Producers with transactions: aborted events do not count, and markers in the log are no lag."""

import asyncio
import urllib.request

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from stream_app.store.database import tables
from stream_app.web.live.log_ends import LogEnds
from stream_app.worker.kafka import broker
from stream_app.worker.kafka.topics import client_options
from tests.conftest import NewService
from tests.e2e.service import Service
from tests.store.batches import consent, turn

pytestmark = pytest.mark.services


async def send(service: Service, events: list[bytes], commit: bool) -> None:
    producer = AIOKafkaProducer(**client_options(service.settings), transactional_id="outbox")
    async with producer:
        await producer.begin_transaction()
        for event in events:
            await producer.send_and_wait(service.settings.turns_topic, event, key=b"s")
        await (producer.commit_transaction() if commit else producer.abort_transaction())


async def ends(service: Service) -> tuple[int, int]:
    """The log's end, markers included, and what the group has committed."""
    place = TopicPartition(service.settings.turns_topic, 0)
    consumer = AIOKafkaConsumer(
        **client_options(service.settings),
        group_id=service.settings.kafka_group,
        enable_auto_commit=False,
    )
    async with consumer:
        consumer.assign([place])
        end = (await consumer.end_offsets([place]))[place]
        return end, await consumer.committed(place) or 0


def lag(service: Service) -> str:
    url = f"http://127.0.0.1:{service.settings.health_port}/metrics"
    with urllib.request.urlopen(url) as answer:
        lines: list[str] = answer.read().decode().splitlines()
    [value] = [line.split()[1] for line in lines if line.startswith("rapport_lag_events{")]
    return value


def test_aborted_events_do_not_count_and_markers_are_no_lag(new_service: NewService) -> None:
    service = new_service(topic_partitions=1, idle_timeout=1.0, health_port=broker.free_port())
    service.start_worker()
    asyncio.run(send(service, [turn(seq) for seq in range(3)], commit=True))
    service.wait_for(lambda: service.count(tables.turns) == 3, "the committed turns are stored")
    asyncio.run(send(service, [turn(seq) for seq in range(3, 6)], commit=False))
    asyncio.run(send(service, [consent("withdrawn")], commit=False))

    def closed() -> bool:
        return [row["status"] for row in service.rows(tables.session_scores)] == ["idle"]

    service.wait_for(closed, "the idle session is closed, though the log ends with markers")
    service.wait_for(lambda: lag(service) == "0.0", "there is no lag")

    def read_to_the_end() -> bool:
        end, committed = asyncio.run(ends(service))
        return end == committed == 10

    service.wait_for(read_to_the_end, "the group has committed the end of the log")
    assert service.count(tables.turns) == 3
    [position] = service.rows(tables.log_positions)
    assert position["next_offset"] == 10, "the console and the doctor see no lag, either"
    service.send([turn(3)])
    service.wait_for(lambda: service.count(tables.turns) == 4, "what follows is read")
    assert "log.deleted" not in (service.folder / "worker.log").read_text("utf-8")


def test_the_console_counts_an_open_transaction_as_no_lag(new_service: NewService) -> None:
    asyncio.run(look_during_a_transaction(new_service(topic_partitions=1)))


async def look_during_a_transaction(service: Service) -> None:
    options = client_options(service.settings)
    topic, group = service.settings.turns_topic, service.settings.kafka_group
    async with AIOKafkaProducer(**options) as producer:
        await producer.send_and_wait(topic, turn(), key=b"s")
    async with AIOKafkaProducer(**options, transactional_id="slow") as producer:
        await producer.begin_transaction()
        await producer.send_and_wait(topic, turn(1), key=b"s")
        log_ends = LogEnds(options, topic, group)
        assert (await log_ends.read()).ends == {0: 1}
        await log_ends.close()
        await producer.abort_transaction()
