"""``rapport replay``: sends recorded events to ``dialogue.turns`` at an adjustable speed."""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from stream_app.commands.event_files import TimedEvent, sample_events
from stream_app.errors import BrokerUnavailable, RapportError
from stream_app.settings import Settings
from stream_app.worker.refusal import started
from stream_app.worker.topics import client_options

PAST_SESSIONS_PER_WEEK: Final = 12
COUNSELLORS_PER_TEAM: Final = 2
"""Counsellors of each team in the sample sessions."""


def producer(settings: Settings) -> AbstractAsyncContextManager[AIOKafkaProducer]:
    """Start a producer for the ``async with`` block.

    Raises:
        BrokerUnavailable: no broker answers.
    """
    client = AIOKafkaProducer(**client_options(settings), acks="all")
    return started(client, settings)


async def send(
    settings: Settings,
    events: Iterable[TimedEvent],
    speed: float,
    on_sent: Callable[[TimedEvent], None] = lambda _: None,
) -> int:
    """Send events in order, each when it is due; ``speed`` 0 sends without pauses.

    Returns the number of events.

    Raises:
        RapportError: some events were not delivered, or the connection was lost.
    """
    sent = 0
    undelivered: list[BaseException] = []

    def note(delivery: asyncio.Future[object]) -> None:
        if not delivery.cancelled() and (problem := delivery.exception()) is not None:
            undelivered.append(problem)

    loop = asyncio.get_running_loop()
    async with producer(settings) as client:
        start = loop.time()
        for event in events:
            pause = start + event.at / speed - loop.time() if speed else 0.0
            if pause > 0:
                await asyncio.sleep(pause)
            try:
                delivery = await client.send(
                    settings.turns_topic, event.value, key=event.key or None
                )
                delivery.add_done_callback(note)
            except MessageSizeTooLargeError as problem:  # the producer's limit of 1 MiB
                undelivered.append(problem)
            except KafkaError as problem:
                raise BrokerUnavailable(
                    f"the broker failed after {sent} events ({type(problem).__name__})"
                ) from problem
            sent += 1
            on_sent(event)
        await client.flush()
    if undelivered:
        raise RapportError(
            f"{len(undelivered)} of {sent} events did not reach {settings.turns_topic}; "
            f"the first error is: {undelivered[0]}"
        )
    return sent


def interleaved_samples(
    samples: list[Path],
    sessions: int | None,
    concurrent: int,
    speed: float,
    run: str,
    begin: datetime | None = None,
) -> Iterator[TimedEvent]:
    """Sample sessions as one merged stream of events, ``concurrent`` sessions at a time.

    Args:
        samples: files of the sample sessions, repeated until there are ``sessions``.
        sessions: number of sessions; None is endless.
        concurrent: sessions that start together; when one ends, another one starts.
        speed: factor on all pauses, already applied to the returned events.
        run: prefix of every session id, so that runs do not collide.
        begin: ``occurred_at`` of the first event; default: now.
    """
    first = begin or datetime.now(UTC)
    queue: list[tuple[float, int, TimedEvent, Iterator[TimedEvent]]] = []
    numbers = itertools.count()
    waiting = iter(range(sessions)) if sessions is not None else itertools.count()

    def start(at: float) -> None:
        number = next(waiting, None)
        if number is None:
            return
        path = samples[number % len(samples)]
        session_id = f"{run}-{number:03}-{path.stem}"
        start_at = first + timedelta(seconds=at)
        events = sample_events(path, session_id, start_at, speed, counsellor_of(number))
        push(at, iter(events))

    def push(base: float, rest: Iterator[TimedEvent]) -> None:
        event = next(rest, None)
        if event is not None:
            shifted = TimedEvent(base + event.at, event.key, event.value)
            heapq.heappush(queue, (shifted.at, next(numbers), shifted, _shifted(rest, base)))

    for place in range(concurrent):
        start(place * 3.0 / speed)
    while queue:
        at, _, event, rest = heapq.heappop(queue)
        yield event
        following = next(rest, None)
        if following is None:
            start(at)
        else:
            heapq.heappush(queue, (following.at, next(numbers), following, rest))


def recently_ended_samples(samples: list[Path], run: str) -> list[TimedEvent]:
    """All sample sessions once, interleaved; the last event is one second old.

    Sent at any speed, no event is in the future.
    """
    now = datetime.now(UTC)
    everything = len(samples), len(samples), 1.0, run
    length = max(event.at for event in interleaved_samples(samples, *everything))
    return list(
        interleaved_samples(samples, *everything, begin=now - timedelta(seconds=length + 1.0))
    )


def past_sessions(samples: list[Path], weeks: int, run: str) -> Iterator[TimedEvent]:
    """Past sessions over this many weeks before today, ``PAST_SESSIONS_PER_WEEK`` each."""
    now = datetime.now(UTC)
    sessions = weeks * PAST_SESSIONS_PER_WEEK
    for number in range(sessions):
        path = samples[number % len(samples)]
        start = now - timedelta(days=1 + 7 * weeks * (1 - number / sessions))
        session_id = f"{run}-past-{number:03}-{path.stem}"
        yield from sample_events(path, session_id, start, 1.0, counsellor_of(number))


def counsellor_of(number: int) -> int:
    """The number of the counsellor who has the session with this number."""
    return number // 7 % COUNSELLORS_PER_TEAM


def _shifted(events: Iterator[TimedEvent], base: float) -> Iterator[TimedEvent]:
    for event in events:
        yield TimedEvent(base + event.at, event.key, event.value)
