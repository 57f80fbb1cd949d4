"""Sample sessions are merged into one stream; undelivered events are reported."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from aiokafka.errors import KafkaTimeoutError, TopicAuthorizationFailedError

from stream_app.errors import BrokerUnavailable, RapportError
from stream_app.recordings import replay
from stream_app.recordings.event_files import TimedEvent, sample_events, sample_sessions
from stream_app.recordings.replay import interleaved_samples, send
from stream_app.settings import Settings
from stream_app.worker.kafka.broker import free_port, running
from stream_app.worker.kafka.topics import declare_topics

SAMPLES = sample_sessions()[:5]
KEYS = [f"r-{n:03}-{SAMPLES[n % 5].stem}".encode() for n in range(12)]


def shown(sessions: int, concurrent: int, speed: float = 1.0) -> list:
    return list(interleaved_samples(SAMPLES, sessions, concurrent, speed, "r"))


@pytest.mark.parametrize("concurrent", [1, 3, 50])
def test_all_sessions_are_complete_and_in_time_order(concurrent: int) -> None:
    events = shown(12, concurrent)
    assert all(one.at <= two.at for one, two in pairwise(events))
    for number, key in enumerate(KEYS):
        path = SAMPLES[number % 5]
        whole = sample_events(path, key.decode(), START, 1.0)
        assert len([event for event in events if event.key == key]) == len(whole)
    assert {event.key for event in events} == set(KEYS)
    assert [e.at for e in events] == [e.at for e in shown(12, concurrent)]


START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("concurrent", [1, 3])
def test_the_number_of_concurrent_sessions_is_limited(concurrent: int) -> None:
    events = shown(12, concurrent)
    last = {event.key: place for place, event in enumerate(events)}
    under_way: set[bytes] = set()
    most = 0
    for place, event in enumerate(events):
        under_way.add(event.key)
        most = max(most, len(under_way))
        if last[event.key] == place:
            under_way.remove(event.key)
    assert most == concurrent


def test_speed_scales_the_whole_stream() -> None:
    slow, fast = shown(6, 2), shown(6, 2, speed=5.0)
    assert [event.key for event in fast] == [event.key for event in slow]
    assert fast[-1].at == pytest.approx(slow[-1].at / 5)


async def test_sending_without_a_broker_is_an_error() -> None:
    away = f"127.0.0.1:{free_port()}"
    settings = Settings().model_copy(update={"kafka_brokers": away})
    with pytest.raises(BrokerUnavailable, match=away):
        await send(settings, shown(1, 1), 0.0)


class Refusing:
    """A producer that fails to deliver marked events."""

    async def send(self, topic: str, value: bytes, key: bytes | None) -> asyncio.Future[object]:
        if value == b"away":
            raise KafkaTimeoutError
        delivery: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        if value == b"bad":
            delivery.set_exception(TopicAuthorizationFailedError(topic))
        else:
            delivery.set_result(None)
        return delivery

    async def flush(self) -> None:
        await asyncio.sleep(0)


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def producer(_: Settings) -> AsyncIterator[Any]:
        yield Refusing()

    monkeypatch.setattr(replay, "producer", producer)


async def test_every_undelivered_event_is_counted(refusing: None) -> None:
    events = [TimedEvent(0.0, b"", value) for value in (b"bad", b"good", b"bad", b"good")]
    with pytest.raises(RapportError, match=r"2 of 4 events .* TopicAuthorizationFailed"):
        await send(Settings(), events, 0.0)
    assert await send(Settings(), events[1:2], 0.0) == 1


async def test_a_lost_broker_ends_the_replay(refusing: None) -> None:
    events = [TimedEvent(0.0, b"", value) for value in (b"good", b"away", b"good")]
    with pytest.raises(BrokerUnavailable, match="after 1 events"):
        await send(Settings(), events, 0.0)


async def test_a_too_large_event_does_not_block_others() -> None:
    with running() as address:
        settings = Settings().model_copy(update={"kafka_brokers": address})
        await declare_topics(settings)
        events = [TimedEvent(0.0, b"k", v) for v in (b"one", b"x" * 1_100_000, b"two")]
        seen: list[TimedEvent] = []
        with pytest.raises(RapportError, match=r"1 of 3 events .* MessageSizeTooLarge"):
            await send(settings, events, 0.0, seen.append)
        assert seen == events
