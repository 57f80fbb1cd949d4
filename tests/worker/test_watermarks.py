"""Wrong producer clocks affect only their own sessions."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from stream_app.bootstrap import worker_process
from stream_app.contracts.plausible import PlausibleTimes
from stream_app.core.pipeline.pipeline import Received, Source, receive
from stream_app.errors import ContractError
from stream_app.settings import Settings
from stream_app.store.database import clocks, tables
from stream_app.store.lifecycle import retention
from stream_app.store.stream.repository import Store
from stream_app.worker.batches.processor import BatchProcessor
from stream_app.worker.kafka.watermarks import Watermarks
from tests.rule_texts import rule_text, rules_of
from tests.store.batches import turn
from tests.store.reading import rows
from tests.worker.processors import processor

Open = Callable[..., Store]
NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)
SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
HALF_AN_HOUR = 30 * MINUTE
ANY_TIME = PlausibleTimes(ahead=timedelta(days=36_500))
SILENCE = rules_of(rule_text("silence", when="waiting && waiting_distress >= 0.0", for_="90s"))


def worker_of(store: Store) -> BatchProcessor:
    return processor(store, rules=SILENCE, times=ANY_TIME, now=lambda: NOW)


def handle_turn(worker: BatchProcessor, session: str, at: datetime, seq: int = 0) -> None:
    """Handle a turn with this producer's time, appended by the broker at NOW."""
    value = turn(seq, session_id=session, occurred_at=at.isoformat())
    worker.handle(worker.prepare([receive(Source("t", 0, 0), value, {}, at, NOW)]))


def fired(worker: BatchProcessor, due: datetime) -> set[str]:
    done = worker.due.fire_due(due, due - HALF_AN_HOUR, [0])
    return set() if done is None else {alert.session_id for alert in done.result.alerts}


@pytest.fixture
def store(open_prepared: Open) -> Store:
    return open_prepared()


@pytest.mark.parametrize("skew", [timedelta(0), timedelta(hours=2), -20 * MINUTE, 400 * DAY])
def test_a_waiting_client_fires_an_alert_whatever_the_producers_clock(
    store: Store, skew: timedelta
) -> None:
    worker = worker_of(store)
    handle_turn(worker, "skewed", NOW + skew)
    handle_turn(worker, "right", NOW)
    assert fired(worker, NOW + 89 * SECOND) == set()
    assert fired(worker, NOW + 91 * SECOND) == {"skewed", "right"}
    [firing] = [
        row
        for row in rows(store, tables.alerts)
        if (row["session_id"], row["state"]) == ("skewed", "firing")
    ]
    assert firing["occurred_at"] == NOW + skew + 90 * SECOND, "in the session's own time"


def test_a_session_in_the_far_future_is_flushed_with_the_others(store: Store) -> None:
    worker = worker_of(store)
    handle_turn(worker, "future", NOW + 400 * DAY)
    handle_turn(worker, "right", NOW)
    assert worker.due.flush_idle(NOW, [0]) is None
    flushed = worker.due.flush_idle(NOW + SECOND, [0])
    assert flushed is not None
    assert flushed.result.sessions.keys() == {"future", "right"}


def test_a_repeated_turn_does_not_delay_the_idle_flush(store: Store) -> None:
    worker = worker_of(store)
    handle_turn(worker, "s", NOW)
    again = processor(store, rules=SILENCE, times=ANY_TIME, now=lambda: NOW + DAY)
    value = turn(session_id="s", occurred_at=NOW.isoformat())
    again.handle(again.prepare([receive(Source("t", 0, 0), value, {}, NOW, None)]))
    assert again.due.flush_idle(NOW + SECOND, [0]) is not None


def test_a_timer_does_not_delay_the_idle_flush(store: Store) -> None:
    worker = worker_of(store)
    handle_turn(worker, "s", NOW)
    assert fired(worker, NOW + 91 * SECOND) == {"s"}
    assert worker.due.flush_idle(NOW + SECOND, [0]) is not None
    [state] = rows(store, tables.session_states)
    assert state["seen_at"] == NOW


def removed(store: Store, now: datetime) -> Counter[str]:
    pieces = retention.purge(store, now - 30 * DAY, now - 365 * DAY, now)
    return sum(pieces, Counter[str]())


def test_text_dated_in_the_far_future_is_purged_on_time(store: Store) -> None:
    store._now = lambda: NOW
    handle_turn(worker_of(store), "future", NOW + 36_000 * DAY)
    assert removed(store, NOW + 29 * DAY) == {}
    assert removed(store, NOW + 31 * DAY) == {"texts": 1, "session_states": 1}
    assert removed(store, NOW + 366 * DAY)["sessions"] == 1


def test_the_daily_purge_rewrites_the_file_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten: list[int] = []
    purged: list[Counter[str]] = []
    monkeypatch.setattr(store, "scrub", lambda: rewritten.append(len(rows(store, tables.sessions))))
    handle_turn(worker_of(store), "s", NOW)
    now = datetime.now(UTC) + 400 * DAY
    monkeypatch.setattr(clocks, "database_now", lambda _: now)
    retention.claim_daily_run(store, now - 2 * DAY)
    for _ in range(2):
        purged += worker_process.purge_expired(Settings(), store, now)
    assert sum(purged, Counter())["sessions"] == 1
    assert rewritten == [0], "after what it deletes"


def test_a_slow_clock_purges_no_live_session(store: Store) -> None:
    store._now = lambda: NOW
    handle_turn(worker_of(store), "behind", NOW - 40 * DAY)
    assert removed(store, NOW + DAY) == {}


def test_rows_written_by_an_earlier_release_are_dated(store: Store) -> None:
    """During a rolling upgrade the earlier release does not fill the new columns."""
    store._now = lambda: NOW
    handle_turn(worker_of(store), "s", NOW)
    with store.engine.begin() as connection:
        connection.execute(tables.session_states.update().values(seen_at=None))
        connection.execute(tables.sessions.update().values(stored_at=None))
    assert removed(store, NOW + DAY) == {}
    later = NOW + 32 * DAY
    assert removed(store, later) == {"texts": 1, "session_states": 1}


def test_retention_distinguishes_live_from_quiet_sessions(store: Store) -> None:
    worker = worker_of(store)
    store._now = lambda: NOW
    handle_turn(worker, "s", NOW - 40 * DAY)
    [state] = rows(store, tables.session_states)
    assert state["seen_at"] == NOW
    assert state["last_activity_at"] == NOW - 40 * DAY


def record(
    at: datetime | None, partition: int = 0, appended_at: datetime | None = None
) -> Received:
    source = Source("t", partition, 0)
    return Received(source, b"", ContractError("schema", "no"), at, None, appended_at)


def read_to(*batch: Received, partition: int = 0) -> datetime | None:
    watermarks = Watermarks()
    watermarks.advance(batch, NOW)
    return watermarks.current({partition: 5}, NOW).get(partition)


def test_the_watermark_of_a_lagging_partition_is_its_append_time() -> None:
    hour_ago = NOW - 60 * MINUTE
    assert read_to(record(NOW, appended_at=hour_ago)) == hour_ago
    assert read_to(record(hour_ago)) == hour_ago
    assert read_to(record(None)) is None
    assert read_to(record(hour_ago), partition=3) is None


def test_a_few_wrong_producer_clocks_do_not_move_the_watermark() -> None:
    hour_ago = NOW - 60 * MINUTE
    right = [record(hour_ago + i * SECOND) for i in range(9)]
    ahead, behind = record(NOW + 9 * DAY), record(NOW - 40 * DAY)
    for wrong in ([ahead], [behind], [ahead, behind], [ahead] * 3):
        found = read_to(*right, *wrong)
        assert found is not None
        assert hour_ago <= found <= hour_ago + 9 * SECOND
    assert read_to(ahead) == NOW, "a watermark is never in the future"


def test_the_watermark_of_a_caught_up_partition_is_the_present() -> None:
    watermarks = Watermarks()
    assert watermarks.current({0: 0, 1: 3}, NOW) == {0: NOW}


def test_the_watermark_stays_with_the_events_before_the_oldest_that_waits() -> None:
    """Else a session whose turns wait would count as silent."""
    hour_ago = NOW - 60 * MINUTE
    overtaken, quiet = record(hour_ago), record(NOW)
    batch = [
        structs.replace(overtaken, done_to=1),
        structs.replace(quiet, source=Source("t", 0, 9), done_to=1),
        structs.replace(quiet, source=Source("t", 0, 10), done_to=1),
    ]
    assert read_to(*batch) == hour_ago
    assert read_to(*batch[1:]) is None, "nothing before the oldest"
    behind = [structs.replace(each, produced_at=hour_ago) for each in batch[1:]]
    ahead = structs.replace(batch[0], produced_at=NOW + DAY)
    assert read_to(ahead, *behind) == hour_ago, "one wrong clock does not move it"
