"""The broker's present is known from records that cannot have waited."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from stream_app.worker.batches.broker_clock import BrokerClock

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def message(at: datetime, partition: int = 0, kind: int = 1) -> SimpleNamespace:
    return SimpleNamespace(partition=partition, timestamp=at.timestamp(), timestamp_type=kind)


def test_a_record_tells_the_time_up_to_how_long_it_may_have_waited() -> None:
    time = [100.0]
    clock = BrokerClock(lambda: time[0])
    clock.at_end([0])
    time[0] = 102.0
    clock.received([message(NOW)])
    assert clock.present() == (NOW, NOW + timedelta(seconds=2))
    time[0] = 162.0
    minute_later = NOW + timedelta(minutes=1)
    assert clock.present() == (minute_later, minute_later + timedelta(seconds=2))


def test_records_that_may_have_waited_for_long_tell_nothing() -> None:
    clock = BrokerClock(lambda: 1.0)
    clock.at_end([0])
    clock.received([message(NOW, partition=1), message(NOW, kind=0)])
    assert clock.present() is None
    clock.forget()
    clock.received([message(NOW)])
    assert clock.present() is None
