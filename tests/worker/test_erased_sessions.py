"""An erased session is not restored by rereading the log or from a worker's cache."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure
from stream_app.store.stream.repository import Store
from tests.store.batches import end, outcome, turn
from tests.store.reading import contents, rows
from tests.worker.processors import handle, processor

Open = Callable[..., Store]
NOW = datetime(2026, 1, 6, tzinfo=UTC)
LATER = datetime.now(UTC) + timedelta(hours=1)
LOG = [turn(seq, session_id=name) for seq in range(9) for name in "ab"]


def erase(store: Store, session_id: str) -> None:
    erasure.erase(store, [session_id], NOW)


def sessions_in(store: Store) -> set[Any]:
    """Session ids in all tables except the marks of erased sessions."""
    found = contents(store)
    return {row["session_id"] for some in found.values() for row in some if "session_id" in row}


def test_rereading_the_log_does_not_restore_an_erased_session(open_prepared: Open) -> None:
    store = open_prepared()
    handle(processor(store), LOG)
    erase(store, "a")
    again = processor(store)
    events = [*LOG, end(session_id="a"), outcome(session_id="a"), b"{"]
    committed = handle(again, events)
    assert sessions_in(store) == {"b"}
    counts = committed.result.counts
    assert counts["erased"] == 9 + 2
    assert counts["duplicate"] == 9
    assert counts["dead-letter"] == 1, "an unreadable event belongs to no session"
    assert again.metrics.events.labels("erased")._value.get() == 11
    assert all(b'"a"' not in message.value for message in committed.messages)


def test_a_refused_turn_does_not_restore_an_erased_session(open_prepared: Open) -> None:
    store = open_prepared()
    handle(processor(store), LOG)
    erase(store, "a")
    committed = handle(processor(store), [turn(9, session_id="a", text="")])
    assert (committed.result.counts, committed.result.dead_letters) == ({"erased": 1}, [])
    assert sessions_in(store) == {"b"}


def test_an_erased_session_is_removed_from_the_cache(open_prepared: Open) -> None:
    store = open_prepared()
    worker = processor(store)
    handle(worker, LOG)
    erase(store, "a")
    more = [turn(seq, session_id=name) for seq in (9, 10) for name in "ab"]
    committed = handle(worker, more)
    assert committed.result.counts["erased"] == 2
    assert worker.metrics.stale_states._value.get() == 1
    assert sessions_in(store) == {"b"}
    assert len(rows(store, tables.turns)) == 11


def test_no_time_rule_fires_in_an_erased_session(open_prepared: Open) -> None:
    store = open_prepared()
    worker = processor(store)
    handle(worker, LOG)
    erase(store, "a")
    worker.due.flush_idle(LATER, [0])
    worker.due.fire_due(LATER, NOW, [0])
    assert sessions_in(store) == {"b"}


def test_a_batch_of_erased_sessions_only_is_acknowledged(open_prepared: Open) -> None:
    store = open_prepared()
    handle(processor(store), LOG)
    erase(store, "a")
    committed = handle(processor(store), [turn(9, session_id="a")])
    assert committed.messages == []
    assert committed.outbox_id is None


def test_a_workers_memory_loses_the_keys_of_erased_sessions(open_prepared: Open) -> None:
    store = open_prepared()
    worker = processor(store)
    handle(worker, LOG)
    cached = worker.cache.peek("a")
    assert cached is not None
    assert len(cached.key) == 32
    worker.due.forget_erased(NOW - timedelta(minutes=10))
    assert sorted(worker.cache.session_ids()) == ["a", "b"]
    erase(store, "a")
    worker.due.forget_erased(NOW + timedelta(minutes=10))
    assert sorted(worker.cache.session_ids()) == ["a", "b"], "an erasure of long ago"
    worker.due.forget_erased(NOW - timedelta(minutes=10))
    assert worker.cache.session_ids() == ["b"]
