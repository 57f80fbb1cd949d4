"""Reads the topic of dead letters, and sends them again after a fix."""

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import Final

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from msgspec import Struct

from stream_app.contracts.framing import unframed
from stream_app.contracts.scores import DEAD_LETTER_HEADER, DeadLetter
from stream_app.errors import BrokerUnavailable
from stream_app.settings import Settings
from stream_app.worker.kafka.publishing import producer
from stream_app.worker.kafka.refusal import explain, quiet_client
from stream_app.worker.kafka.topics import client_options, stable_end

POLL_MS: Final = 500


class DeadLetterRecord(Struct, frozen=True):
    """A dead letter with the original bytes, which may be truncated."""

    letter: DeadLetter
    raw: bytes

    @property
    def complete(self) -> bool:
        """Whether the original bytes are not truncated, so that they can be sent again."""
        return len(self.raw) == self.letter.size


async def read(settings: Settings) -> list[DeadLetterRecord]:
    """All dead letters without duplicates, in the log order of each partition.

    Raises:
        BrokerUnavailable: no broker answers, or the topic is missing.
    """
    found: dict[str, DeadLetterRecord] = {}
    async for key, item in _records(settings):
        if item is None:
            found.pop(key, None)
        else:
            found.setdefault(key, item)
    return list(found.values())


def select(
    found: Iterable[DeadLetterRecord], reasons: Sequence[str] = (), ids: Sequence[str] = ()
) -> list[DeadLetterRecord]:
    """Filter by reasons and by ids; an empty filter matches all."""
    return [
        item
        for item in found
        if (not reasons or item.letter.reason in reasons)
        and (not ids or item.letter.dead_letter_id in ids)
    ]


async def resend(settings: Settings, found: Sequence[DeadLetterRecord]) -> int:
    """Send the complete ones to their original partitions; return their number.

    Events that are still invalid become dead letters again. Turns that were accepted in the
    meantime are recognised by session and seq.

    Raises:
        BrokerUnavailable: no broker answers, or the connection was lost; resending is harmless.
    """
    whole = [item for item in found if item.complete]
    async with producer(settings) as client:
        sending = [
            await client.send(settings.turns_topic, item.raw, partition=item.letter.partition)
            for item in whole
        ]
        await asyncio.gather(*sending)
    return len(whole)


async def ids_about(settings: Settings, session_ids: Collection[str]) -> dict[str, set[str]]:
    """Return the ids of dead letters about a session, by session.

    Raises:
        BrokerUnavailable: no broker answers, or the topic is missing.
    """
    names = {session_id: encoded(session_id) for session_id in session_ids}
    found: dict[str, set[str]] = {session_id: set() for session_id in session_ids}
    async for key, item in _records(settings):
        for session_id, letters in found.items():
            if item is None:
                letters.discard(key)
            elif is_about(item.raw, session_id, names[session_id]):
                letters.add(key)
    return found


class _Named(Struct):
    session_id: str


_named = msgspec.json.Decoder(_Named).decode


def is_about(raw: bytes, session_id: str, forms: Collection[bytes]) -> bool:
    """Whether the event names the session; if its id cannot be read, whether it contains it."""
    try:
        return _named(unframed(raw)).session_id == session_id
    except (msgspec.MsgspecError, RecursionError):  # the latter: nested too deeply
        return any(form in raw for form in forms)


def encoded(session_id: str) -> set[bytes]:
    """The forms that an id can have in JSON."""
    quoted = (json.dumps(session_id, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
    return {session_id.encode(), *(form.encode() for form in quoted)}


async def _records(settings: Settings) -> AsyncIterator[tuple[str, DeadLetterRecord | None]]:
    """Yield dead letters with their ids; None for an id that was withdrawn by an erasure."""
    topic = settings.dead_letter_topic
    consumer = AIOKafkaConsumer(
        **client_options(settings), enable_auto_commit=False, isolation_level="read_committed"
    )
    try:
        with quiet_client():
            await consumer.start()
        known = await consumer._client.fetch_all_metadata()  # noqa: SLF001  # the public one caches
        numbers = known.partitions_for_topic(topic)
        if not numbers:
            raise BrokerUnavailable(f"there is no topic {topic}; `rapport worker` creates it")
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
                        yield letter.dead_letter_id, DeadLetterRecord(letter, record.value or b"")
                    elif record.value is None and record.key is not None:
                        yield record.key.decode("utf-8", "replace"), None
    except KafkaError as problem:
        raise await explain(settings, problem) from problem
    finally:
        await consumer.stop()


async def _at_end(consumer: AIOKafkaConsumer, partitions: list[TopicPartition]) -> bool:
    """Whether every partition is read to the end of its committed records."""
    for partition in partitions:
        end = stable_end(consumer.highwater(partition), consumer.last_stable_offset(partition))
        if end is None or await consumer.position(partition) < end:
            return False
    return True
