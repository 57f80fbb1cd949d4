"""Reads all records of a topic."""

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from stream_app.settings import Settings
from stream_app.worker.kafka.topics import client_options

FETCH_MS = 50


def records(settings: Settings, topic: str) -> list[Any]:
    """All records up to the current end, each partition in order."""
    return asyncio.run(_records(settings, topic))


async def _records(settings: Settings, topic: str) -> list[Any]:
    consumer = AIOKafkaConsumer(
        **client_options(settings), fetch_max_wait_ms=FETCH_MS, isolation_level="read_committed"
    )
    await consumer.start()
    try:
        partitions = [TopicPartition(topic, p) for p in range(settings.topic_partitions)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        found: list[Any] = []
        while not await _at_end(consumer, partitions):
            batch = await consumer.getmany(timeout_ms=FETCH_MS)
            found += [record for fetched in batch.values() for record in fetched]
        return found
    finally:
        await consumer.stop()


async def _at_end(consumer: AIOKafkaConsumer, partitions: list[TopicPartition]) -> bool:
    """Whether every partition is read to the high watermark of its fetches.

    The embedded broker reports the first offset of the last batch as the end offset.
    """
    for partition in partitions:
        end = consumer.highwater(partition)
        if end is None or await consumer.position(partition) < end:
            return False
    return True
