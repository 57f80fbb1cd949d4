"""What is read ahead: decoded always, encoded where consent covers it."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from msgspec import structs

from stream_app.contracts.events import Turn
from stream_app.core.pipeline import Pipeline
from stream_app.core.ports import Encoding
from stream_app.store.repository import Store
from stream_app.worker.metrics import WorkerMetrics
from stream_app.worker.reader import BatchReader, record_of
from tests.store.batches import end, pipeline, turn
from tests.worker.processors import handle, processor, records

Open = Callable[..., Store]


class Encoder:
    """Writes down which texts are encoded, and when the pipeline had to do it itself."""

    def __init__(self, core: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        encode = core.encode

        def encoded(turns: Collection[Turn]) -> list[Encoding]:
            self.texts += [turn.text for turn in turns]
            return encode(turns)

        monkeypatch.setattr(core, "encode", encoded)


def test_a_turn_is_encoded_where_this_batch_or_the_one_before_or_the_state_says_consent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = pipeline()
    encoder = Encoder(core, monkeypatch)
    reader = BatchReader(core, {"known": True}.get, WorkerMetrics())  # type: ignore[arg-type]
    batches = [
        [
            turn(0, session_id="new", text="first", consent=True),
            turn(1, session_id="new", text="second", consent=None),
            turn(0, session_id="silent", text="nobody said", consent=None),
        ],
        [
            turn(2, session_id="new", text="third", consent=None),
            turn(7, session_id="known", text="known", consent=None),
            turn(8, session_id="known", text="taken back", consent=False),
            turn(9, session_id="known", text="after that", consent=None),
        ],
        [
            turn(10, session_id="known", text="in the next batch", consent=None),
            end(session_id="known"),
        ],
    ]
    read = [reader.read(records(values)) for values in batches]
    assert encoder.texts == ["first", "second", "third", "known"]
    encoded = [[received.encoding is not None for received in batch] for batch in read]
    assert encoded == [[True, True, False], [True, True, False, False], [False, False]]


def test_what_was_read_ahead_is_not_encoded_again(
    open_prepared: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = processor(open_prepared())
    encoder = Encoder(worker._pipeline, monkeypatch)
    handle(worker, [turn(0, text="one"), turn(1, text="two")])
    assert encoder.texts == ["one", "two"]


def test_what_could_not_be_read_ahead_is_encoded_when_the_state_is_known(
    open_prepared: Open,
) -> None:
    store = open_prepared()
    handle(processor(store), [turn(0)])
    anew = processor(store)  # it has no states in memory
    [received] = anew.read(records([turn(1, consent=None)]))
    assert received.encoding is None
    assert len(anew.handle([received]).result.turns) == 1


def test_consent_that_is_taken_back_meanwhile_counts(open_prepared: Open) -> None:
    worker = processor(open_prepared())
    handle(worker, [turn(0)])
    [ahead] = worker.read(records([turn(2, consent=None)]))
    assert ahead.encoding is not None
    handle(worker, [turn(1, consent=False)])
    result = worker.handle([ahead]).result
    assert result.turns == []
    assert result.counts["withheld"] == 1


def test_reading_ahead_changes_no_score(open_prepared: Open) -> None:
    values = [turn(seq, session_id=name) for seq in range(6) for name in "ab"]
    ahead = handle(processor(open_prepared("ahead")), values)
    worker = processor(open_prepared("after"))
    batch = worker.read(records(values))
    bare = [structs.replace(received, encoding=None) for received in batch]
    assert worker.handle(bare).messages == ahead.messages


@pytest.mark.parametrize("timestamp", [None, -0.001, 0.0, 1e15, -1e15, float("inf"), float("nan")])
def test_a_timestamp_that_no_date_holds_is_none(timestamp: float | None) -> None:
    """Kafka takes any 64-bit number of milliseconds from a producer."""
    assert record_of(event(timestamp, 0)).produced_at is None


def test_only_the_brokers_own_time_is_an_append_time() -> None:
    produced, appended = record_of(event(1.5, 0)), record_of(event(1.5, 1))
    at = datetime.fromtimestamp(1.5, UTC)
    assert (produced.produced_at, produced.appended_at) == (at, None)
    assert (appended.produced_at, appended.appended_at) == (at, at)


def test_events_whose_key_is_not_their_session_are_counted(open_prepared: Open) -> None:
    worker = processor(open_prepared())
    keyed = [record_of(event(1.5, 0, key)) for key in (b"s", b"another", None)]
    assert len(worker.read(keyed)) == 3
    assert worker.metrics.miskeyed._value.get() == 2


def event(
    timestamp: float | None, timestamp_type: int, key: bytes | None = b"s"
) -> SimpleNamespace:
    return SimpleNamespace(
        value=turn(),
        message=SimpleNamespace(
            topic="t",
            partition=0,
            offset=0,
            timestamp=timestamp,
            timestamp_type=timestamp_type,
            headers=None,
            key=key,
        ),
    )
