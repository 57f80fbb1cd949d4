"""Publishes the messages of a batch as one record batch per partition.

A turn has three messages, and aiokafka's ``send`` has a cost per message. Consumers see no
difference: keys are partitioned by the default partitioner of Kafka clients, and messages of a
partition keep their order.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.partitioner import DefaultPartitioner

from stream_app.contracts.cloudevents import outgoing_headers
from stream_app.core.session.ports import Message
from stream_app.errors import BrokerUnavailable
from stream_app.settings import Settings
from stream_app.worker.kafka.refusal import started
from stream_app.worker.kafka.topics import client_options

_partition_of = DefaultPartitioner()


@asynccontextmanager
async def producer(settings: Settings) -> AsyncIterator[AIOKafkaProducer]:
    """Start a producer for the ``async with`` block.

    Raises:
        BrokerUnavailable: no broker answers, or the connection was lost in the block.
    """
    client = AIOKafkaProducer(**client_options(settings), acks="all")
    async with started(client, settings):
        try:
            yield client
        except KafkaError as problem:
            raise BrokerUnavailable(
                f"the broker connection was lost ({type(problem).__name__}); repeat the command"
            ) from problem


async def publish(client: Any, messages: Sequence[Message]) -> None:
    """Send the messages and wait until the brokers have acknowledged them.

    Args:
        client: a started ``aiokafka.AIOKafkaProducer``.
        messages: in order; each partition receives its messages in this order.

    Raises:
        aiokafka.errors.KafkaError: the brokers refused some messages or could not be reached.
    """
    partitions = {
        topic: sorted(await client.partitions_for(topic))
        for topic in dict.fromkeys(message.topic for message in messages)
    }
    places: dict[tuple[str, bytes], tuple[str, int]] = {}
    filling: dict[tuple[str, int], Any] = {}
    sending = []
    for message in messages:
        topic, key, value = message.topic, message.key, message.value
        place = places.get((topic, key))
        if place is None:
            available = partitions[topic]
            place = places[topic, key] = topic, _partition_of(key, available, available)
        records = filling.get(place)
        if records is None:
            records = filling[place] = client.create_batch()
        headers = outgoing_headers(message.type, value) if message.type and value else []
        record = {
            "key": key,
            "value": value,
            "timestamp": None,
            "headers": [*headers, *message.trace],
        }
        if records.append(**record) is None:  # the record batch is full
            sending.append(await _send(client, place, records))
            records = filling[place] = client.create_batch()
            records.append(**record)
    for place, records in filling.items():
        sending.append(await _send(client, place, records))
    await asyncio.gather(*sending)


async def _send(client: Any, place: tuple[str, int], records: Any) -> asyncio.Future[Any]:
    topic, partition = place
    records.close()
    future: asyncio.Future[Any] = await client.send_batch(records, topic, partition=partition)
    return future
