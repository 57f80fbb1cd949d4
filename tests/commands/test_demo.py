"""What the demo plays: at a realistic pace, varied, with one alert that waits from the start."""

import json
from collections import defaultdict
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile

import pytest

from stream_app import bootstrap
from stream_app.cli.running import up
from stream_app.contracts.scores import AlertState
from stream_app.demo import played_sessions as demo
from stream_app.recordings.event_files import TimedEvent, sample_counsellor, sample_sessions
from stream_app.settings import Settings
from tests.store.batches import received

SAMPLES = sample_sessions()
CONCURRENT = 12
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
TEN_MINUTES = 600.0
TWO_MINUTES = 120.0
FIRING = AlertState.FIRING


def played(seconds: float, concurrent: int = CONCURRENT, speed: float = 1.0) -> list[TimedEvent]:
    events = demo.live_sessions(SAMPLES, concurrent, speed, NOW)
    return list(takewhile(lambda event: event.at <= seconds, events))


def begins(events: list[TimedEvent]) -> dict[str, float]:
    found: dict[str, float] = {}
    for event in events:
        found.setdefault(event.key.decode(), event.at)
    return found


def times(events: list[TimedEvent]) -> list[datetime]:
    """When the events happened; some of the sample with broken events do not say."""
    found = []
    for event in events:
        with suppress(ValueError, KeyError, TypeError):
            moment = datetime.fromisoformat(json.loads(event.value)["occurred_at"])
            found.append(moment.astimezone(UTC))
    return found


def test_the_command_plays_at_the_pace_of_typing() -> None:
    assert up.__defaults__ is not None
    assert up.__defaults__[:2] == (1.0, CONCURRENT)
    gaps = defaultdict(list)
    last: dict[bytes, float] = {}
    for event in played(TEN_MINUTES):
        gaps[event.key].append(event.at - last.get(event.key, event.at))
        last[event.key] = event.at
    longest = sorted(gap for key in gaps for gap in gaps[key][1:])
    assert 10 < longest[len(longest) // 2] < 40


def test_ids_are_short_words_and_no_conversation_is_repeated_within_ten_minutes() -> None:
    events = played(3 * TEN_MINUTES)
    names = begins(events)
    assert all(len(name) <= 30 and name.replace("-", "").isalnum() for name in names)
    assert len(names) > 2 * CONCURRENT
    by_sample = defaultdict(list)
    for name, at in names.items():
        by_sample[name.removesuffix("-2")].append(at)
    assert len(by_sample) == len(SAMPLES)
    for times in by_sample.values():
        assert all(second - first >= TEN_MINUTES for first, second in pairwise(times))


@pytest.mark.parametrize("concurrent", [1, 12, 27, 200])
def test_sessions_are_under_way_at_the_start_and_none_has_ended(concurrent: int) -> None:
    events = played(0.0, concurrent)
    ended = {event.key for event in events if b'"session_end"' in event.value}
    assert not ended
    names = begins(events)
    assert len(names) == concurrent
    assert min(names.values()) < -200.0
    assert all(moment <= NOW for moment in times(events))


def test_a_faster_demo_has_the_same_events_earlier() -> None:
    slow, fast = played(50.0), played(10.0, speed=5.0)
    assert [event.key for event in fast] == [event.key for event in slow]
    assert fast[-1].at == pytest.approx(slow[-1].at / 5)


def test_the_alert_that_waits_is_in_a_session_of_the_demos_counsellor() -> None:
    own = [e for e in played(0.0) if e.key == demo.words_of_first().encode()]
    speakers = {json.loads(event.value)["speaker_id"] for event in own}
    assert sample_counsellor("south", 0) in speakers


def test_past_sessions_have_the_day_in_their_name_and_end_before_today() -> None:
    events = list(demo.past_sessions(SAMPLES, 4, NOW))
    names = begins(events)
    assert len(names) == 4 * demo.PAST_SESSIONS_PER_WEEK
    assert all(name.rstrip("2-")[-3:] in {"may", "jun"} for name in names)
    assert events[-1].at < TWO_MINUTES
    assert all(one.at <= two.at for one, two in pairwise(events))
    assert max(times(events)) < NOW - timedelta(hours=1)
    assert list(demo.past_sessions(SAMPLES, 0, NOW)) == []


@pytest.mark.slow
def test_one_alert_waits_at_the_start_and_no_other_fires_in_two_minutes() -> None:
    settings = Settings()
    pipeline = bootstrap.pipeline(settings, bootstrap.offline_scorer(settings))
    values = [event.value for event in played(TWO_MINUTES)]
    found = [a for a in pipeline.process(received(values), {}).alerts if a.state is FIRING]
    assert [(alert.rule, alert.session_id) for alert in found] == [
        ("low-empathy", demo.words_of_first())
    ]
    [alert] = found
    assert alert.occurred_at <= NOW
    until = NOW + timedelta(minutes=3)
    longer = pipeline.process(received([event.value for event in played(180.0)]), {}).alerts
    later = [each for each in longer if each.episode_id == alert.episode_id]
    assert all(each.state is FIRING or each.occurred_at > until for each in later[-1:])
