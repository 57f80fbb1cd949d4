"""Record batches give consumers the same partitions and order as single messages."""

import asyncio
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError, KafkaError

from stream_app.contracts import schema
from stream_app.core.session.ports import Message
from stream_app.errors import BrokerUnavailable
from stream_app.worker.kafka.publishing import producer, publish
from stream_app.worker.kafka.topics import client_options
from tests.e2e.service import Service

SMALL = 2048
"""Size of a record batch in bytes, so small that a partition needs several."""


def messages(topics: list[str], count: int) -> list[Message]:
    return [
        Message(
            topics[number % len(topics)],
            f"session-{number % 17}".encode(),
            f"{number} ".encode() + b"x" * (number % 700),
        )
        for number in range(count)
    ]


def sent(service: Service, found: list[Message], **options: Any) -> None:
    async def send() -> None:
        client = AIOKafkaProducer(**client_options(service.settings), acks="all", **options)
        await client.start()
        try:
            await publish(client, found)
        finally:
            await client.stop()

    asyncio.run(send())


def sent_one_by_one(service: Service, found: list[Message]) -> None:
    async def send() -> None:
        client = AIOKafkaProducer(**client_options(service.settings), acks="all")
        await client.start()
        try:
            for message in found:
                await client.send(message.topic, message.value, key=message.key)
        finally:
            await client.stop()

    asyncio.run(send())


def by_partition(service: Service, topic: str) -> dict[int, list[tuple[bytes, bytes]]]:
    received = defaultdict(list)
    for record in service.messages(topic):
        received[record.partition].append((record.key, record.value))
    return dict(received)


@pytest.mark.parametrize("size", [SMALL, 512 * 1024])
def test_partitions_and_order_equal_those_of_single_sends(service: Service, size: int) -> None:
    settings = service.settings
    topics = [settings.turn_score_topic, settings.session_score_topic]
    singly = [settings.alert_topic, settings.dead_letter_topic]
    sent(service, messages(topics, 400), max_batch_size=size)
    sent_one_by_one(service, messages(singly, 400))
    for topic, other in zip(topics, singly, strict=True):
        found = by_partition(service, topic)
        assert found == by_partition(service, other)
        assert sum(map(len, found.values())) == 200
        assert len(found) == settings.topic_partitions


def test_a_message_larger_than_a_record_batch_is_sent_separately(service: Service) -> None:
    topic = service.settings.turn_score_topic
    values = [b"a", b"b" * 3 * SMALL, b"c"]
    sent(service, [Message(topic, b"s", value) for value in values], max_batch_size=SMALL)
    [records] = by_partition(service, topic).values()
    assert [value for _, value in records] == values


def test_a_typed_message_is_a_cloud_event_with_its_schema(service: Service) -> None:
    topic = service.settings.turn_score_topic
    value = b'{"type":"turn_score","note":"' + b"x" * SMALL + b'"}'
    typed = Message(topic, b"s", value, "turn_score")
    sent(service, [typed, typed, Message(topic, b"s", None, "turn_score")], max_batch_size=SMALL)
    first, again, removed = service.messages(topic)
    found = dict(first.headers)
    schema_of = json.loads((schema.SCHEMA_DIR / "turn_score.v1.json").read_text("utf-8"))
    assert found.pop("ce_id")
    assert found == {
        "ce_specversion": b"1.0",
        "ce_source": b"rapport",
        "ce_type": b"rapport.turn_score",
        "ce_dataschema": schema_of["$id"].encode(),
        "content-type": b"application/json",
    }
    assert again.headers == first.headers, "sent twice, it has the same id"
    assert (removed.value, list(removed.headers)) == (None, [])


def test_publishing_no_messages_does_nothing(service: Service) -> None:
    sent(service, [])


def test_an_unavailable_broker_raises_an_error(tmp_path: Path) -> None:
    service = Service(tmp_path)  # with a separate broker
    topic = service.settings.turn_score_topic

    async def send() -> None:
        client = AIOKafkaProducer(
            **client_options(service.settings), acks="all", request_timeout_ms=1000
        )
        await client.start()
        try:
            await publish(client, [Message(topic, b"s", b"v")])
            service.close()
            await publish(client, [Message(topic, b"s", b"v")])
        finally:
            await client.stop()

    with pytest.raises(KafkaError):
        asyncio.run(send())


def test_a_command_that_loses_its_brokers_says_so(service: Service) -> None:
    async def send() -> None:
        async with producer(service.settings):
            raise KafkaConnectionError

    with pytest.raises(BrokerUnavailable, match=r"was lost \(KafkaConnectionError\)"):
        asyncio.run(send())
