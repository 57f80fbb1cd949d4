"""Samples are merged into one stream."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from stream_app.commands.event_files import sample_events, sample_sessions
from stream_app.commands.replay import send, showing
from stream_app.errors import BrokerUnavailable
from stream_app.settings import Settings
from stream_app.worker.broker import free_port

SAMPLES = sample_sessions()[:5]
KEYS = [f"r-{n:03}-{SAMPLES[n % 5].stem}".encode() for n in range(12)]


def shown(sessions: int, concurrent: int, speed: float = 1.0) -> list:
    return list(showing(SAMPLES, sessions, concurrent, speed, "r"))


@pytest.mark.parametrize("concurrent", [1, 3, 50])
def test_all_sessions_are_shown_whole_and_in_time(concurrent: int) -> None:
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
def test_no_more_sessions_than_asked_for_are_under_way(concurrent: int) -> None:
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


def test_speed_is_a_factor_on_the_whole_showing() -> None:
    slow, fast = shown(6, 2), shown(6, 2, speed=5.0)
    assert [event.key for event in fast] == [event.key for event in slow]
    assert fast[-1].at == pytest.approx(slow[-1].at / 5)


async def test_without_a_broker_sending_says_so() -> None:
    away = f"127.0.0.1:{free_port()}"
    settings = Settings().model_copy(update={"kafka_brokers": away})
    with pytest.raises(BrokerUnavailable, match=away):
        await send(settings, shown(1, 1), 0.0)
