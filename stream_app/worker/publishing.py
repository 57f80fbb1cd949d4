"""Messages of a batch go out as one record batch for each partition, not one call for each message.

A turn has three messages, and aiokafka makes, times and awaits something for each that it is given
by itself. What they are for a consumer stays: a key's partition is that of every Kafka client's
default, and messages of a partition keep their order.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from aiokafka.partitioner import DefaultPartitioner

from stream_app.core.ports import Message

_partition_of = DefaultPartitioner()


async def publish(client: Any, messages: Sequence[Message]) -> None:
    """Send the messages; when it returns, the brokers have all of them.

    Args:
        client: an ``aiokafka.AIOKafkaProducer`` that runs.
        messages: in the order in which each partition gets them.

    Raises:
        aiokafka.errors.KafkaError: the brokers refused some of them, or could not be reached.
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
            all_of_it = partitions[topic]
            place = places[topic, key] = topic, _partition_of(key, all_of_it, all_of_it)
        records = filling.get(place)
        if records is None:
            records = filling[place] = client.create_batch()
        if records.append(key=key, value=value, timestamp=None) is None:  # it is full
            sending.append(await _sent(client, place, records))
            records = filling[place] = client.create_batch()
            records.append(key=key, value=value, timestamp=None)
    for place, records in filling.items():
        sending.append(await _sent(client, place, records))
    await asyncio.gather(*sending)


async def _sent(client: Any, place: tuple[str, int], records: Any) -> asyncio.Future[Any]:
    topic, partition = place
    records.close()
    future: asyncio.Future[Any] = await client.send_batch(records, topic, partition=partition)
    return future
