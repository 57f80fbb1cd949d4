"""Batches through the processor: retries, stale states, idle sessions, the outbox."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from msgspec import structs
from structlog.testing import capture_logs

from stream_app.contracts.cloudevents import binary_headers
from stream_app.contracts.events import decode
from stream_app.errors import StaleState, StoreError, StoreUnavailable
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from stream_app.worker.batches.commits import STALE_ATTEMPTS
from tests.store.batches import end, outcome, turn
from tests.store.reading import rows
from tests.worker.processors import TOPICS, handle, processor

Open = Callable[..., Store]
LOG = [turn(seq, session_id=name) for seq in range(9) for name in "ab"]
LOG += [end(session_id="a"), outcome(session_id="a")]
BEFORE, LATER = (datetime.now(UTC) + timedelta(hours=hours) for hours in (-1, 1))


def scored(store: Store) -> dict[str, Any]:
    """The rows without the columns that depend on worker and time."""
    found = {
        table.name: rows(store, table)
        for table in (
            tables.turn_scores,
            tables.session_scores,
            tables.alerts,
            tables.outcomes,
            tables.sessions,
        )
    }
    for row in found["sessions"]:
        del row["stored_at"]
    found["turns"] = [(r["session_id"], r["seq"], r["text"]) for r in rows(store, tables.turns)]
    return found


@pytest.fixture
def undisturbed(open_prepared: Open) -> dict[str, Any]:
    """The rows of one worker without faults."""
    store = open_prepared("undisturbed")
    handle(processor(store), LOG)
    return scored(store)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, recorded instead of slept."""
    slept: list[float] = []
    monkeypatch.setattr(
        "stream_app.worker.batches.retries.sleep_using_event", lambda _: slept.append
    )
    return slept


class Failing:
    """Wraps a method of the store and first raises the given errors."""

    def __init__(self, call: Callable[..., Any], *problems: Exception) -> None:
        self._call = call
        self._problems = list(problems)
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, *args: Any) -> Any:
        self.calls.append(args)
        if self._problems:
            raise self._problems.pop(0)
        return self._call(*args)


@pytest.mark.parametrize("method", ["commit", "load_states"])
def test_an_unavailable_store_is_retried_with_growing_pauses(
    open_prepared: Open, pauses: list[float], undisturbed: dict[str, Any], method: str
) -> None:
    store = open_prepared()
    away = Failing(getattr(store, method), *[StoreUnavailable("away")] * 12)
    setattr(store, method, away)
    handle(processor(store), LOG)
    assert len(away.calls) == 13
    assert len(pauses) == 12
    assert 0.0 <= max(pauses[:3]) <= 0.4
    assert 0.4 < max(pauses) <= 5.0
    assert scored(store) == undisturbed


def test_the_processor_gives_up_after_the_retry_time_and_clears_its_cache(
    open_prepared: Open, pauses: list[float]
) -> None:
    store = open_prepared()
    worker = processor(store, retry_for=0.2)
    handle(worker, [turn(0)])
    away = Failing(store.commit, *[StoreUnavailable("away")] * 1_000_000)
    store.commit = away
    with pytest.raises(StoreUnavailable):
        handle(worker, [turn(1)])
    assert len(away.calls) > 1
    assert len(worker.cache) == 0


def test_a_stopping_worker_does_not_wait_for_the_database(open_prepared: Open) -> None:
    store = open_prepared()
    worker = processor(store, retry_for=300.0)
    away = Failing(store.commit, *[StoreUnavailable("away")] * 1_000_000)
    store.commit = away
    threading.Timer(0.3, worker.retries.stop).start()
    with pytest.raises(StoreUnavailable):
        handle(worker, [turn(1)])


def test_errors_that_cannot_be_retried_are_raised_immediately(
    open_prepared: Open, pauses: list[float]
) -> None:
    store = open_prepared()
    refusing = Failing(store.commit, StoreError("refused"))
    store.commit = refusing
    with pytest.raises(StoreError, match="refused"):
        handle(processor(store), [turn()])
    assert len(refusing.calls) == 1
    assert pauses == []


def test_a_failed_batch_has_the_same_scores_when_it_is_repeated(
    open_prepared: Open, undisturbed: dict[str, Any]
) -> None:
    store = open_prepared()
    worker = processor(store)
    handle(worker, LOG[:7])
    store.commit = Failing(store.commit, StoreError("refused"))
    with pytest.raises(StoreError):
        handle(worker, LOG[7:])
    handle(worker, LOG[7:])
    assert scored(store) == undisturbed


def test_a_stale_state_is_reloaded_and_the_batch_repeated(
    open_prepared: Open, undisturbed: dict[str, Any]
) -> None:
    """``one`` keeps its cache while its partition is temporarily assigned to ``two``."""
    one, two = processor(open_prepared()), processor(open_prepared())
    handle(one, LOG[:5])
    handle(two, LOG[5:11])
    committed = handle(one, LOG[11:])
    assert committed.result.sessions["a"].version == 3
    assert scored(open_prepared()) == undisturbed


def test_a_zombie_worker_repeating_a_batch_changes_nothing(
    open_prepared: Open, undisturbed: dict[str, Any]
) -> None:
    zombie, heir = processor(open_prepared()), processor(open_prepared())
    handle(zombie, LOG[:5])
    handle(heir, LOG)
    committed = handle(zombie, LOG[5:11])
    assert committed.result.counts["duplicate"] == 6
    assert committed.messages == []
    assert scored(open_prepared()) == undisturbed


def test_workers_of_one_session_take_turns(
    open_prepared: Open, pauses: list[float], undisturbed: dict[str, Any]
) -> None:
    """Its events are in several partitions because their keys differ, so commits conflict."""
    store = open_prepared()
    store.commit = Failing(store.commit, *[StaleState("moved on")] * 5)
    handle(processor(store), LOG)
    assert len(pauses) == 5
    assert scored(store) == undisturbed


def test_a_persistently_stale_state_is_not_retried_forever(
    open_prepared: Open, pauses: list[float]
) -> None:
    store = open_prepared()
    stale = Failing(store.commit, *[StaleState("moved on")] * 100)
    store.commit = stale
    with pytest.raises(StaleState):
        handle(processor(store), [turn(), turn(1)])
    assert len(stale.calls) == STALE_ATTEMPTS
    with pytest.raises(StaleState):
        handle(processor(store, retry_for=0.0), [turn()])
    handle(processor(store), [turn()])
    assert len(pauses) > 3 * STALE_ATTEMPTS, "a single event waits for its turn"


def test_a_commit_whose_response_was_lost_is_not_repeated(
    open_prepared: Open, pauses: list[float], undisturbed: dict[str, Any]
) -> None:
    store = open_prepared()
    commit = store.commit

    def through_but_unheard(
        result: Any, messages: Any, positions: Any, published: Any
    ) -> int | None:
        versions = {key: known.version for key, known in result.sessions.items()}
        commit(result, messages, positions, published)
        for key, version in versions.items():
            result.sessions[key].version = version
        store.commit = commit
        raise StoreUnavailable("the connection was lost")

    worker = processor(store)
    handle(worker, LOG[:7])
    store.commit = through_but_unheard
    handle(worker, LOG[7:])
    assert scored(store) == undisturbed
    assert len(store.outbox_ids()) == 2


def test_states_are_loaded_once_and_then_cached(open_prepared: Open) -> None:
    store = open_prepared()
    worker = processor(store)
    store.observe_redaction = worker.metrics.redaction_seconds.observe
    store.load_states = loading = Failing(store.load_states)
    for seq in range(3):
        handle(worker, [turn(seq), turn(seq, session_id="t")])
    assert [call[0] for call in loading.calls] == [["s", "t"], [], []]
    sample = worker.metrics.registry.get_sample_value
    assert sample("rapport_cache_hits_total") == 4
    assert sample("rapport_cache_misses_total") == 2
    assert sample("rapport_cached_sessions") == 2
    assert sample("rapport_batch_events_sum") == 6
    assert sample("rapport_events_total", {"fate": "accepted"}) == 6
    assert sample("rapport_redaction_seconds_count") == 6
    for stage in ("decode", "load", "score", "commit"):
        assert sample("rapport_stage_seconds_count", {"stage": stage}) == 3


def test_an_invalidated_cache_is_cleared_before_the_next_batch(open_prepared: Open) -> None:
    store = open_prepared()
    worker = processor(store)
    handle(worker, [turn(0)])
    store.load_states = loading = Failing(store.load_states)
    worker.cache.invalidate()
    assert len(worker.cache) == 1
    handle(worker, [turn(1)])
    handle(worker, [turn(2)])
    assert [call[0] for call in loading.calls] == [["s"], []]


@pytest.mark.parametrize("cached", [1, 2])
def test_a_cache_smaller_than_a_batch_changes_no_row(
    open_prepared: Open, undisturbed: dict[str, Any], cached: int
) -> None:
    store = open_prepared()
    worker = processor(store, cached=cached)
    for start in range(0, len(LOG), 4):
        handle(worker, LOG[start : start + 4])
        assert len(worker.cache) <= cached
    assert scored(store) == undisturbed


def test_idle_sessions_are_flushed_once(open_prepared: Open) -> None:
    store = open_prepared()
    worker = processor(store)
    handle(worker, LOG)
    assert worker.due.flush_idle(BEFORE, [0]) is None
    assert worker.due.flush_idle(LATER, [1]) is None
    flushed = worker.due.flush_idle(LATER, [0])
    assert flushed is not None
    assert flushed.result.sessions.keys() == {"b"}
    assert flushed.outbox_id is not None
    assert {m.key for m in flushed.messages} == {b"b"}
    statuses = {r["session_id"]: r["status"] for r in rows(store, tables.session_scores)}
    assert statuses == {"a": "closed", "b": "idle"}
    finals = [r for r in rows(store, tables.turn_scores) if r["stage"] == "final"]
    assert len(finals) == 18
    assert worker.due.flush_idle(LATER, [0]) is None


@pytest.mark.parametrize("cut", [3, 8, 13])
def test_a_flushed_session_continues_as_if_it_had_not_been_flushed(
    open_prepared: Open, undisturbed: dict[str, Any], cut: int
) -> None:
    store = open_prepared()
    worker = processor(store)
    handle(worker, LOG[:cut])
    assert worker.due.flush_idle(LATER, [0]) is not None
    handle(worker, LOG[cut:])
    assert scored(store) == undisturbed


def test_flushing_a_stale_state_reloads_it(open_prepared: Open) -> None:
    one, two = processor(open_prepared()), processor(open_prepared())
    handle(one, [turn(0)])
    handle(two, [turn(1)])
    flushed = one.due.flush_idle(LATER, [0])
    assert flushed is not None
    assert flushed.result.session_scores[0].turns == 2


def test_abandoned_batches_are_returned_until_they_are_published(open_prepared: Open) -> None:
    times = iter((100.0, 159.0, 160.0, 161.0))
    dead, heir = processor(open_prepared()), processor(open_prepared(), clock=lambda: next(times))
    committed = handle(dead, LOG)
    assert heir.outbox.abandoned(60.0) == []
    assert heir.outbox.abandoned(60.0) == []
    [left] = heir.outbox.abandoned(60.0)
    assert left.messages == committed.messages
    assert {message.topic for message in left.messages} == set(structs.astuple(TOPICS))
    heir.outbox.mark_published(left)
    assert heir.outbox.abandoned(0.0) == []
    dead.outbox.mark_published(committed)


def test_published_messages_leave_the_outbox_with_the_next_commit(open_prepared: Open) -> None:
    store = open_prepared()
    worker = processor(store)
    first = handle(worker, [turn(0)])
    worker.outbox.mark_published_later(first)
    assert store.outbox_ids() == [first.outbox_id]
    second = handle(worker, [turn(1)])
    assert store.outbox_ids() == [second.outbox_id]
    worker.outbox.mark_published(second)
    assert store.outbox_ids() == []


def test_messages_are_scores_with_the_session_as_key(open_prepared: Open) -> None:
    committed = handle(processor(open_prepared()), [turn(), turn(1)])
    sent = [(m.topic, m.key, json.loads(m.value)["type"]) for m in committed.messages]
    assert sent[:2] == [("turn-scores", b"s", "turn_score")] * 2
    assert ("session-scores", b"s", "session_score") in sent
    assert not any(b"must have been hard" in message.value for message in committed.messages)


def test_a_batch_of_invalid_events_only_is_dead_lettered_and_stores_nothing(
    open_prepared: Open,
) -> None:
    store = open_prepared()
    texts = [turn(text=""), turn(text="X").replace(b"X", rb"\ud83d")]
    invalid = [b"", b"{", *(text.replace(b'"seq"', b'"sequence"') for text in texts)]
    committed = handle(processor(store), invalid)
    reasons = [item.letter.reason for item in committed.result.dead_letters]
    assert reasons == ["not-json", "not-json", "empty-text", "lone-surrogate"]
    assert [item.raw for item in committed.result.dead_letters] == invalid
    assert committed.outbox_id is None
    assert not any(scored(store).values())


def test_a_refused_turn_keeps_its_place_and_nothing_else(open_prepared: Open) -> None:
    store = open_prepared()
    worker = processor(store)
    committed = handle(worker, [turn(0, text="")])
    assert committed.outbox_id is None
    found = scored(store)
    [session] = found.pop("sessions")
    assert (session["session_id"], session["started_at"]) == ("s", None)
    assert not any(found.values())
    committed = handle(processor(store), [turn(1)])
    assert [score.seq for score in committed.result.turn_scores] == [1]


def test_an_unheard_session_has_no_scores_when_it_is_idle(open_prepared: Open) -> None:
    worker = processor(open_prepared())
    handle(worker, [turn(0, text="")])
    committed = worker.due.flush_idle(LATER, [0])
    assert committed is None or committed.result.session_scores == []


def test_a_refused_turn_leaves_no_state_to_a_session_whose_state_has_expired(
    open_prepared: Open,
) -> None:
    store = open_prepared()
    handle(processor(store), [turn(0, team="north"), turn(1)])
    with store.transaction() as connection:
        connection.execute(sa.delete(tables.session_states))
    before = scored(store)
    committed = handle(processor(store), [turn(2, text=""), turn(3, team="south")])
    assert committed.result.counts == {"dead-letter": 2}
    assert scored(store) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ce_type", b"rapport.session_end"),
        ("ce_partitionkey", b"another"),
        ("ce_specversion", b"2.0"),
        ("ce_id", b""),
        ("content-type", b"text/plain"),
    ],
)
def test_a_cloud_event_that_contradicts_its_data_is_dead_lettered(
    open_prepared: Open, name: str, value: bytes
) -> None:
    store = open_prepared()
    headers = dict(binary_headers(decode(turn()), "id", "/test"))
    committed = handle(processor(store), [turn()], headers | {name: value})
    [item] = committed.result.dead_letters
    assert item.letter.reason == "cloudevent"
    assert item.raw == turn()
    assert rows(store, tables.turns) == []
    assert handle(processor(store), [turn()], headers).result.dead_letters == []
    assert len(rows(store, tables.turns)) == 1


def test_an_end_before_its_session_is_kept_without_effect(open_prepared: Open) -> None:
    store = open_prepared()
    early = end(occurred_at="2026-01-01T00:00:00Z")
    handle(processor(store), [early])
    worker = processor(store)
    handle(worker, [early, *(turn(seq) for seq in range(4))])
    assert [row["seq"] for row in rows(store, tables.turns)] == [0, 1, 2, 3]
    assert {row["status"] for row in rows(store, tables.session_scores)} == {"open"}
    handle(worker, [end()])
    assert {row["status"] for row in rows(store, tables.session_scores)} == {"closed"}


def test_an_end_closes_a_session_whose_state_has_expired(open_prepared: Open) -> None:
    store = open_prepared()
    handle(processor(store), [turn(0), turn(1)])
    with store.transaction() as connection:
        connection.execute(sa.delete(tables.session_states))
    handle(processor(store), [end()])
    [session] = rows(store, tables.sessions)
    assert session["ended_at"] is not None
    assert {row["status"] for row in rows(store, tables.session_scores)} == {"closed"}


def test_turns_after_the_end_of_a_session_that_nobody_watches_alert_the_operator(
    open_prepared: Open,
) -> None:
    worker = processor(open_prepared())
    after = turn(1, occurred_at="2026-01-05T11:00:01Z")
    with capture_logs() as logged:
        handle(worker, [turn(0, consent=None), end(), after])
    found = worker.metrics.registry.get_sample_value("rapport_events_total", {"fate": "unheard"})
    assert found == 1
    assert [entry["turns"] for entry in logged if entry["event"] == "session.unheard"] == [1]


def test_a_turn_that_contradicts_a_stored_session_without_a_state_is_refused(
    open_prepared: Open,
) -> None:
    """Its state has expired or belongs to another bundle."""
    store = open_prepared()
    handle(processor(store), [turn(0, team="north")])
    with store.transaction() as connection:
        connection.execute(sa.delete(tables.session_states))
    other = turn(1, team="south", speaker_id="spy@example.org")
    committed = handle(processor(store), [other, turn(1, team="north")])
    assert [a.letter.reason for a in committed.result.dead_letters] == ["contradicts-session"]
    [session] = rows(store, tables.sessions)
    assert session["team"] == "north"
    assert [row["seq"] for row in rows(store, tables.turns)] == [0, 1]
