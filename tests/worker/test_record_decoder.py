"""Decoding of records, including unusual ones."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from stream_app.errors import ContractError
from stream_app.worker.batches import record_decoder as module
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.batches.record_decoder import RecordDecoder
from tests.store.batches import pipeline, turn


def event(
    timestamp: float | None = 1.5, timestamp_type: int = 0, key: bytes | None = b"s"
) -> SimpleNamespace:
    message = SimpleNamespace(
        topic="t",
        partition=0,
        offset=0,
        timestamp=timestamp,
        timestamp_type=timestamp_type,
        headers=None,
        key=key,
    )
    return SimpleNamespace(value=turn(), message=message)


@pytest.fixture
def decoder() -> RecordDecoder:
    return RecordDecoder(WorkerMetrics())


@pytest.mark.parametrize("timestamp", [None, -0.001, 0.0, 1e15, -1e15, float("inf"), float("nan")])
def test_a_timestamp_outside_the_calendar_is_none(
    decoder: RecordDecoder, timestamp: float | None
) -> None:
    """Kafka accepts any 64-bit number of milliseconds from a producer."""
    assert decoder.decode(event(timestamp)).produced_at is None


def test_only_the_brokers_timestamp_is_an_append_time(decoder: RecordDecoder) -> None:
    produced, appended = decoder.decode(event(1.5, 0)), decoder.decode(event(1.5, 1))
    at = datetime.fromtimestamp(1.5, UTC)
    assert (produced.produced_at, produced.appended_at) == (at, None)
    assert (appended.produced_at, appended.appended_at) == (at, at)


def test_events_whose_key_is_not_the_session_id_are_counted() -> None:
    metrics = WorkerMetrics()
    decoder = RecordDecoder(metrics)
    for key in (b"s", b"another", None):
        decoder.decode(event(key=key))
    assert metrics.miskeyed._value.get() == 2


@pytest.mark.parametrize(
    ("problem", "raised"), [(OverflowError("zanzibar"), False), (MemoryError(), True)]
)
def test_a_record_that_fails_to_decode_is_dead_lettered(
    decoder: RecordDecoder, monkeypatch: pytest.MonkeyPatch, problem: Exception, raised: bool
) -> None:
    def failing(*_: Any) -> None:
        raise problem

    monkeypatch.setattr(module, "receive", failing)
    if raised:
        with pytest.raises(MemoryError):
            decoder.decode(event())
        return
    found = decoder.decode(event()).event
    assert isinstance(found, ContractError)
    assert found.code == "unprocessable"
    assert "zanzibar" not in found.detail


def test_dead_letters_of_a_recreated_topic_have_new_ids(decoder: RecordDecoder) -> None:
    """Offsets begin again at 0; reading the same record again gives the same id."""

    def letter(timestamp: float | None) -> str:
        record = event(timestamp)
        record.value = b"{"
        [found] = pipeline().process([decoder.decode(record)], {}).dead_letters
        return found.letter.dead_letter_id

    assert letter(1_767_000_000.123) == letter(1_767_000_000.123) == "t:0:0:1767000000123"
    assert letter(1_767_000_099.9) == "t:0:0:1767000099900"
    assert letter(None) == "t:0:0"
