"""``rapport dead-letters``: what was set aside and why, and sending it again after a fix."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from msgspec import Struct

from stream_app.commands.replay import producer
from stream_app.contracts.scores import DEAD_LETTER_HEADER, DeadLetter
from stream_app.errors import BrokerUnavailable
from stream_app.settings import Settings
from stream_app.worker.topics import client_options

POLL_MS = 500


class DeadLetterRecord(Struct, frozen=True):
    """A dead letter and the bytes that it is about; ``whole`` unless only their beginning is."""

    letter: DeadLetter
    raw: bytes

    @property
    def complete(self) -> bool:
        """Whether all bytes of the original are there, so that it can be sent again."""
        return len(self.raw) == self.letter.size


async def read(settings: Settings) -> list[DeadLetterRecord]:
    """Every dead letter once, in the order of the log of each partition.

    Raises:
        BrokerUnavailable: no broker answers, or the topic is missing.
    """
    found: dict[str, DeadLetterRecord] = {}
    async for item in _records(settings):
        found.setdefault(item.letter.dead_letter_id, item)
    return list(found.values())


def select(
    found: Iterable[DeadLetterRecord], reasons: Sequence[str] = (), ids: Sequence[str] = ()
) -> list[DeadLetterRecord]:
    """Those with one of the reasons and one of the ids; without either, all."""
    return [
        item
        for item in found
        if (not reasons or item.letter.reason in reasons)
        and (not ids or item.letter.dead_letter_id in ids)
    ]


def count_by_reason(found: Iterable[DeadLetterRecord]) -> list[tuple[str, int]]:
    """How many were set aside for each reason, most first."""
    return Counter(item.letter.reason for item in found).most_common()


async def resend(settings: Settings, found: Sequence[DeadLetterRecord]) -> int:
    """Send the whole ones to the partition that they came from; returns how many.

    What is still wrong comes back as a dead letter. A turn that was taken in the meantime is
    recognised by its session and seq.

    Raises:
        BrokerUnavailable: no broker answers, or it went away; sending all again does no harm.
    """
    whole = [item for item in found if item.complete]
    async with producer(settings) as client:
        try:
            sending = [
                await client.send(settings.turns_topic, item.raw, partition=item.letter.partition)
                for item in whole
            ]
            await asyncio.gather(*sending)
        except KafkaError as problem:
            raise BrokerUnavailable(
                f"the broker went away ({type(problem).__name__}); replay the same again"
            ) from problem
    return len(whole)


async def _records(settings: Settings) -> AsyncIterator[DeadLetterRecord]:
    topic = settings.dead_letter_topic
    consumer = AIOKafkaConsumer(**client_options(settings), enable_auto_commit=False)
    try:
        await consumer.start()
        known = await consumer._client.fetch_all_metadata()  # noqa: SLF001  # the public one caches
        numbers = known.partitions_for_topic(topic)
        if not numbers:
            raise BrokerUnavailable(f"the topic {topic} does not exist; `rapport worker` makes it")
        partitions = [TopicPartition(topic, number) for number in sorted(numbers)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        while not await _at_end(consumer, partitions):
            batch = await consumer.getmany(timeout_ms=POLL_MS)
            for records in batch.values():
                for record in records:
                    header = dict(record.headers).get(DEAD_LETTER_HEADER)
                    if header is not None:
                        letter = msgspec.json.decode(header, type=DeadLetter)
                        yield DeadLetterRecord(letter, record.value or b"")
    except KafkaError as problem:
        raise BrokerUnavailable(
            f"no Kafka broker answers at {settings.kafka_brokers} ({type(problem).__name__}); "
            "check RAPPORT_KAFKA_BROKERS"
        ) from problem
    finally:
        await consumer.stop()


async def _at_end(consumer: AIOKafkaConsumer, partitions: list[TopicPartition]) -> bool:
    """By the high watermark of the fetches: known after the first one of each partition."""
    for partition in partitions:
        end = consumer.highwater(partition)
        if end is None or await consumer.position(partition) < end:
            return False
    return True
