"""Time rules fire in silent sessions: with the processor, a store and the real core."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from stream_app.worker.batches.processor import BatchProcessor
from tests.fakes import START
from tests.rule_texts import rule_text, rules_of
from tests.store.batches import end, turn
from tests.store.reading import rows
from tests.worker.processors import live, processor, records

Open = Callable[..., Store]
SILENCE = rules_of(
    rule_text(
        "silence",
        summary="The client has waited for {waiting_seconds} s.",
        when="waiting && waiting_distress >= 0.0",
        for_="90s",
    )
)
MINUTE = timedelta(minutes=1)
ASKED, DEADLINE = START, START + timedelta(seconds=90)
HALF_AN_HOUR = timedelta(minutes=30)


def at(moment: datetime) -> str:
    return moment.isoformat()


def take(worker: BatchProcessor, *values: bytes) -> None:
    worker.handle(worker.prepare(live(values)))


def tick(worker: BatchProcessor, due: datetime, partition: int = 0) -> list[str]:
    done = worker.due.fire_due(due, due - HALF_AN_HOUR, [partition])
    return [] if done is None else [alert.state.value for alert in done.result.alerts]


def transitions(store: Store) -> list[tuple[Any, ...]]:
    """The alert transitions in order."""
    found = rows(store, tables.alerts)
    order = ["pending", "firing", "resolved", "inactive"]
    found.sort(key=lambda row: (row["session_id"], row["episode"], order.index(row["state"])))
    return [
        (row["session_id"], row["state"], row["seq"], row["occurred_at"], row["reason"])
        for row in found
    ]


@pytest.fixture
def store(open_prepared: Open) -> Store:
    return open_prepared()


@pytest.fixture
def worker(store: Store) -> BatchProcessor:
    return processor(store, rules=SILENCE)


def test_a_waiting_client_fires_an_alert_without_another_event(
    store: Store, worker: BatchProcessor
) -> None:
    take(worker, turn(0, occurred_at=at(ASKED)))
    assert tick(worker, DEADLINE - timedelta(microseconds=1)) == []
    assert tick(worker, DEADLINE + MINUTE) == ["firing"]
    assert tick(worker, DEADLINE + 2 * MINUTE) == []
    assert transitions(store)[-1] == ("s", "firing", 0, DEADLINE, "The client has waited for 90 s.")
    [session] = rows(store, tables.session_scores)
    assert session["status"] == "open"
    [state] = rows(store, tables.session_states)
    assert state["wake_at"] is None


def test_a_tick_and_the_next_event_give_the_same_alert(store: Store, open_prepared: Open) -> None:
    log = [
        turn(0, occurred_at=at(ASKED)),
        turn(1, occurred_at=at(DEADLINE + 5 * MINUTE)),
        end(occurred_at=at(DEADLINE + 9 * MINUTE)),
    ]
    ticked = processor(store, rules=SILENCE)
    take(ticked, log[0])
    assert tick(ticked, DEADLINE + MINUTE) == ["firing"]
    take(ticked, *log[1:])
    other = open_prepared("other")
    take(processor(other, rules=SILENCE), *log)
    for table in (tables.alerts, tables.turn_scores, tables.session_scores):
        assert rows(store, table) == rows(other, table)


def test_an_answer_in_time_fires_no_alert(store: Store, worker: BatchProcessor) -> None:
    take(
        worker,
        turn(0, occurred_at=at(ASKED)),
        turn(1, occurred_at=at(DEADLINE - timedelta(seconds=1))),
    )
    assert tick(worker, DEADLINE + MINUTE) == []
    assert [state for _, state, *_ in transitions(store)] == ["pending", "inactive"]


def test_an_old_recording_is_not_ticked(store: Store, worker: BatchProcessor) -> None:
    """Its records are appended now, but its events are old: no client waits."""
    now = datetime.now(UTC)
    worker.handle(worker.prepare(records([turn(0, occurred_at=at(ASKED))])))
    assert now - ASKED > HALF_AN_HOUR
    assert tick(worker, now + 2 * MINUTE) == []
    assert [state for _, state, *_ in transitions(store)] == ["pending"]


def test_only_the_workers_own_partitions_are_ticked(worker: BatchProcessor) -> None:
    take(worker, turn(0, occurred_at=at(ASKED)))
    assert tick(worker, DEADLINE + MINUTE, partition=3) == []
    assert tick(worker, DEADLINE + MINUTE, partition=0) == ["firing"]


def test_a_session_that_has_ended_is_not_ticked(store: Store, worker: BatchProcessor) -> None:
    take(worker, turn(0, occurred_at=at(ASKED)), end(occurred_at=at(ASKED + timedelta(seconds=9))))
    assert tick(worker, DEADLINE + MINUTE) == []
    assert [state for _, state, *_ in transitions(store)] == ["pending", "inactive"]


def test_without_consent_no_time_rule_fires(store: Store, worker: BatchProcessor) -> None:
    """Withheld turns are unknown: the counsellor may have answered."""
    take(
        worker,
        turn(0, occurred_at=at(ASKED)),
        turn(1, occurred_at=at(ASKED + timedelta(seconds=5)), consent=False),
    )
    assert tick(worker, DEADLINE + MINUTE) == []
    assert [state for _, state, *_ in transitions(store)] == ["pending", "inactive"]


def test_a_tick_of_a_stale_state_is_repeated(store: Store, worker: BatchProcessor) -> None:
    """Compare and swap: the other worker's commit wins, and the repeated tick does nothing."""
    take(worker, turn(0, occurred_at=at(ASKED)))
    other = processor(store, rules=SILENCE)
    take(other, turn(2, session_id="q", occurred_at=at(ASKED)))
    take(other, turn(1, occurred_at=at(ASKED + timedelta(seconds=20))))
    assert tick(worker, DEADLINE + MINUTE) == []
    states = [state for session, state, *_ in transitions(store) if session == "s"]
    assert states == ["pending", "inactive"]


def test_a_tick_publishes_the_stored_alerts(store: Store, worker: BatchProcessor) -> None:
    take(worker, turn(0, occurred_at=at(ASKED)))
    done = worker.due.fire_due(DEADLINE, DEADLINE - HALF_AN_HOUR, [0])
    assert done is not None
    assert sorted(message.topic for message in done.messages) == ["alerts", "session-scores"]
    assert done.outbox_id in store.outbox_ids()


def test_no_silence_is_reported_while_a_turn_is_missing(
    store: Store, worker: BatchProcessor
) -> None:
    """Turn 2 waits for turn 1, which may be the answer."""
    take(
        worker,
        turn(0, occurred_at=at(ASKED)),
        turn(2, occurred_at=at(ASKED + timedelta(seconds=20))),
    )
    assert tick(worker, DEADLINE + MINUTE) == []
    take(worker, turn(1, occurred_at=at(ASKED + timedelta(seconds=10))))
    assert [state for _, state, *_ in transitions(store)][:2] == ["pending", "inactive"]
