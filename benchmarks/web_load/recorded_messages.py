"""Keeps the record batches that a worker would send to the topics, and sends them later."""

import asyncio
from typing import Any

from aiokafka import AIOKafkaProducer
from msgspec import Struct


class RecordBatch(Struct, frozen=True):
    """An encoded batch of one partition, as aiokafka builds it."""

    topic: str
    partition: int
    records: Any


class RecordingProducer:
    """What ``worker.publishing.publish`` takes for a producer; it keeps all and sends nothing."""

    def __init__(self, producer: AIOKafkaProducer, partitions: int) -> None:
        self._producer = producer
        self._partitions = set(range(partitions))
        self._kept: list[RecordBatch] = []

    def take(self) -> list[RecordBatch]:
        """Remove and return what was published since the last call."""
        taken, self._kept = self._kept, []
        return taken

    async def partitions_for(self, _topic: str) -> set[int]:
        """The partitions of every topic."""
        return self._partitions

    def create_batch(self) -> Any:
        """A builder of the real producer."""
        return self._producer.create_batch()

    async def send_batch(self, records: Any, topic: str, *, partition: int) -> asyncio.Future[None]:
        """Keep a batch."""
        self._kept.append(RecordBatch(topic, partition, records))
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sent.set_result(None)
        return sent


async def send(producer: AIOKafkaProducer, batches: list[RecordBatch]) -> int:
    """Send recorded batches; return the number of their messages."""
    sending = [
        await producer.send_batch(one.records, one.topic, partition=one.partition)
        for one in batches
    ]
    await asyncio.gather(*sending)
    return sum(one.records.record_count() for one in batches)
