"""Sends recorded events to ``dialogue.turns`` at an adjustable speed."""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from stream_app.errors import BrokerUnavailable, RapportError
from stream_app.recordings.event_files import TimedEvent, sample_events
from stream_app.settings import Settings
from stream_app.worker.kafka.publishing import producer

COUNSELLORS_PER_TEAM: Final = 2
"""Counsellors of each team in the sample sessions."""


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

    def session(number: int, at: float) -> list[TimedEvent]:
        if sessions is not None and number >= sessions:
            return []
        path = samples[number % len(samples)]
        session_id = f"{run}-{number:03}-{path.stem}"
        began = first + timedelta(seconds=at)
        return sample_events(path, session_id, began, speed, counsellor_of(number))

    return interleaved([place * 3.0 / speed for place in range(concurrent)], session)


def interleaved(
    begins: Sequence[float], session: Callable[[int, float], list[TimedEvent]]
) -> Iterator[TimedEvent]:
    """Sessions as one stream of events in the order of time; when one ends, another one begins.

    Args:
        begins: when the first ones begin, in seconds.
        session: the events of the session with this number that begins then, timed from its own
            begin; empty: there is none any more.
    """
    queue: list[tuple[float, int, TimedEvent, Iterator[TimedEvent]]] = []
    numbers, places = itertools.count(), itertools.count()

    def push(rest: Iterator[TimedEvent]) -> None:
        event = next(rest, None)
        if event is not None:
            heapq.heappush(queue, (event.at, next(places), event, rest))

    def start(at: float) -> None:
        push(_shifted(iter(session(next(numbers), at)), at))

    for begin in begins:
        start(begin)
    while queue:
        at, _, event, rest = heapq.heappop(queue)
        yield event
        following = next(rest, None)
        if following is None:
            start(at)
        else:
            heapq.heappush(queue, (following.at, next(places), following, rest))


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


def counsellor_of(number: int) -> int:
    """The number of the counsellor who has the session with this number."""
    return number // 7 % COUNSELLORS_PER_TEAM


def _shifted(events: Iterator[TimedEvent], base: float) -> Iterator[TimedEvent]:
    for event in events:
        yield TimedEvent(base + event.at, event.key, event.value)
