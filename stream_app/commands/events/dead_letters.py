"""``rapport dead-letters``: lists dead letters, and replays them after a fix."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence

from aiokafka.errors import KafkaError

from stream_app.commands.events.replay import producer
from stream_app.errors import BrokerUnavailable
from stream_app.settings import Settings
from stream_app.worker.kafka.dead_letters import DeadLetterRecord


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


def count_by_reason(found: Iterable[DeadLetterRecord]) -> list[tuple[str, int]]:
    """Number of dead letters by reason, the most frequent first."""
    return Counter(item.letter.reason for item in found).most_common()


async def resend(settings: Settings, found: Sequence[DeadLetterRecord]) -> int:
    """Send the complete ones to their original partitions; return their number.

    Events that are still invalid become dead letters again. Turns that were accepted in the
    meantime are recognised by session and seq.

    Raises:
        BrokerUnavailable: no broker answers, or the connection was lost; resending is harmless.
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
                f"the broker connection was lost ({type(problem).__name__}); repeat the command"
            ) from problem
    return len(whole)
