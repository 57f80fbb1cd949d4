"""Expired data is purged: first text, later the session; newer data is kept."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from stream_app.store.database import tables
from stream_app.store.database.periods import SEEN_SECONDS, seen_period
from stream_app.store.lifecycle import holds, retention
from stream_app.store.stream.repository import Store
from tests.store import batches
from tests.store.reading import contents, rows

SAID = datetime(2026, 1, 5, 10, tzinfo=UTC)
LONG_AGO = SAID - timedelta(days=1000)


def day(number: int) -> str:
    return (SAID + timedelta(days=number)).isoformat()


def fill(store: Store) -> None:
    """A session of one hour and one with a turn a day for ten days, stored at the turns' times."""
    short = [batches.turn(seq, session_id="short") for seq in range(6)]
    store_at(store, 0, *short, batches.end(session_id="short"))
    for seq in range(10):
        store_at(store, seq, batches.turn(seq, session_id="long", occurred_at=day(seq)))


def store_at(store: Store, number: int, *values: bytes) -> None:
    """Store events as of that day."""
    now = SAID + timedelta(days=number)
    store._now = lambda: now
    known = store.load_states(["short", "long"], batches.BUNDLE)
    for versioned in known.values():
        versioned.seen_at = now
    store.commit(batches.process(list(values), known))


def removed(
    store: Store, text_before: datetime, sessions_before: datetime = LONG_AGO
) -> Counter[str]:
    return sum(retention.purge(store, text_before, sessions_before, SAID), Counter[str]())


def test_old_text_is_removed_turn_by_turn_and_scores_stay(store: Store) -> None:
    fill(store)
    before = contents(store)
    assert removed(store, SAID + timedelta(days=4.5)) == {"texts": 6 + 5, "session_states": 1}
    after = contents(store)
    left = {row["seq"] for row in after["turns"] if row["text"] is not None}
    assert left == {5, 6, 7, 8, 9}
    for name in ("session_states", "window_turns"):
        assert {row["session_id"] for row in after[name]} == {"long"}
    assert len(after["turns"]) == len(before["turns"])
    for name in ("sessions", "turn_scores", "session_scores", "alerts"):
        assert after[name] == before[name]


def test_a_session_is_purged_when_its_last_turn_has_expired(store: Store) -> None:
    fill(store)
    gone = removed(store, LONG_AGO, SAID + timedelta(days=5))
    assert gone["sessions"] == 1
    assert gone["turns"] == 6
    left = contents(store)
    assert "'short'" not in repr({k: v for k, v in left.items() if k != "erasures"})
    assert len(left["turns"]) == 10
    assert left["erasures"] == [], "it was not erased: it may come again"
    assert removed(store, LONG_AGO, SAID + timedelta(days=30))["sessions"] == 1
    assert rows(store, tables.turn_scores) == []


def test_without_expired_data_nothing_is_purged(store: Store) -> None:
    fill(store)
    before = contents(store)
    assert list(retention.purge(store, SAID, LONG_AGO, SAID)) == []
    assert contents(store) == before


def test_large_purges_run_in_batches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "ROWS_PER_BATCH", 3)
    monkeypatch.setattr(retention, "SESSIONS_PER_BATCH", 1)
    fill(store)
    far = SAID + timedelta(days=100)
    pieces = list(retention.purge(store, far, far, SAID))
    texts = [piece["texts"] for piece in pieces if "texts" in piece]
    assert texts == [3] * 5 + [1]
    assert sum(piece["sessions"] for piece in pieces) == 2
    assert sum(piece["sessions"] > 0 for piece in pieces) == 2


def test_one_of_several_workers_purges_once_a_day(store: Store, other: Store) -> None:
    assert retention.claim_daily_run(store, SAID)
    assert not retention.claim_daily_run(other, SAID + timedelta(hours=23))
    assert not retention.claim_daily_run(store, SAID + timedelta(hours=23))
    assert retention.claim_daily_run(other, SAID + timedelta(hours=25))
    assert not retention.claim_daily_run(store, SAID + timedelta(hours=26))


def test_the_time_of_the_oldest_text_is_reported(store: Store) -> None:
    assert retention.oldest_text_stored_at(store) is None
    fill(store)
    assert retention.oldest_text_stored_at(store) == SAID
    removed(store, SAID + timedelta(days=4.5))
    assert retention.oldest_text_stored_at(store) == SAID + timedelta(days=5)


def test_a_session_continues_after_its_state_was_purged(store: Store) -> None:
    fill(store)
    removed(store, SAID + timedelta(days=100))
    assert rows(store, tables.session_states) == []
    later = batches.turn(10, session_id="long", occurred_at=day(11))
    store_at(store, 11, later)
    assert len(rows(store, tables.session_states)) == 1


def test_what_was_stored_at_the_very_time_has_not_expired(store: Store) -> None:
    store_at(store, 0, batches.turn(session_id="short"))
    assert removed(store, SAID, SAID) == {}
    moment = timedelta(microseconds=1)
    assert removed(store, SAID + moment) == {"texts": 1, "session_states": 1}
    assert removed(store, SAID, SAID + moment)["sessions"] == 1


def test_a_state_expires_in_the_period_in_which_it_was_seen(store: Store) -> None:
    store_at(store, 0, batches.turn(session_id="short"))
    later = SAID + timedelta(seconds=SEEN_SECONDS / 2)
    assert seen_period(later) == seen_period(SAID)
    assert removed(store, later) == {"texts": 1, "session_states": 1}


def test_a_state_of_an_idle_session_expires(store: Store) -> None:
    store_at(store, 0, batches.turn(session_id="short"))
    states = store.load_states(["short"], batches.BUNDLE)
    store.commit(batches.pipeline().flush_idle(states))
    [state] = rows(store, tables.session_states)
    assert state["status"] == "idle"
    assert removed(store, SAID + timedelta(days=1))["session_states"] == 1


def test_a_state_expires_and_one_of_another_bundle_stays(store: Store) -> None:
    """As while workers of two bundles read one log: each state has its own time."""
    store_at(store, 0, batches.turn(session_id="short"))
    for table in (tables.session_states, tables.window_turns):
        with store.transaction() as connection:
            [row] = connection.execute(sa.select(table)).mappings()
            other = {**row, "bundle": "another"}
            if table is tables.session_states:
                other |= {"seen_at": SAID + timedelta(days=9)}
                other["seen_period"] = seen_period(other["seen_at"])
            connection.execute(sa.insert(table).values(other))
    store.prepare("another", "1" * 64, {"name": "another"}, True)
    assert removed(store, SAID + timedelta(days=1))["session_states"] == 1
    for table in (tables.session_states, tables.window_turns):
        with store.reading() as connection:
            assert list(connection.scalars(sa.select(table.c.bundle))) == ["another"]


def test_the_number_of_an_archived_session_on_hold_stays(store: Store) -> None:
    with store.transaction() as connection:
        for name in ("held", "free"):
            connection.execute(sa.insert(tables.session_numbers).values(session_id=name, at=SAID))
        moved = {"month": SAID.date(), "started_at": SAID, "archived_at": SAID}
        connection.execute(
            sa.insert(tables.archived_sessions).values(session_id="held", stored_at=SAID, **moved)
        )
    holds.add(store, "held", "case 12/2026", "ada", SAID)
    assert removed(store, LONG_AGO, SAID + timedelta(days=1)) == {"session_numbers": 1}
    assert [row["session_id"] for row in rows(store, tables.session_numbers)] == ["held"]


def test_a_session_that_is_put_on_hold_before_it_is_locked_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    lock = retention.session_locks.lock

    def held_before(connection: sa.Connection, session_ids: list[str]) -> None:
        if not connection.scalar(sa.select(sa.func.count()).select_from(tables.holds)):
            hold = {"session_id": "long", "reason": "case 12/2026", "person": "ada", "at": SAID}
            connection.execute(sa.insert(tables.holds).values(hold))
        lock(connection, session_ids)

    monkeypatch.setattr(retention.session_locks, "lock", held_before)
    assert removed(store, LONG_AGO, SAID + timedelta(days=30))["sessions"] == 1
    assert [row["session_id"] for row in rows(store, tables.sessions)] == ["long"]
