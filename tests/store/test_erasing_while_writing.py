"""Sessions that are erased, or expire, while another process writes their rows."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from servers.postgres import Server
from stream_app.analytics.rollups import rollups
from stream_app.errors import RolledBack
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure, retention
from stream_app.store.stream.repository import Store
from tests.store import batches, databases
from tests.store.reading import rows

NOW = datetime(2026, 1, 6, tzinfo=UTC)
LONGEST_WAIT = 20.0
_WAITING = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE wait_event_type = 'Lock' AND datname = current_database()"
)


@pytest.fixture
def upgraded_url(server: Server) -> Iterator[str]:
    """PostgreSQL: SQLite has one writer at a time."""
    url = databases.postgresql(server)
    yield url
    server.drop(url)


def erase(store: Store) -> None:
    erasure.erase(store, ["s"], NOW)


def expire(store: Store) -> None:
    list(retention.purge(store, NOW, NOW + timedelta(days=9999), NOW))


@pytest.mark.parametrize("delete", [erase, expire])
def test_a_worker_that_writes_a_session_does_not_deadlock_with_its_deletion(
    store: Store, other: Store, delete: Callable[[Store], None]
) -> None:
    store.commit(batches.process([batches.turn(0), batches.turn(1)]))
    states = store.load_states(["s"], batches.BUNDLE)
    with meanwhile(store, "UPDATE sessions", lambda: delete(other)):
        store.commit(batches.process([batches.turn(2)], states))
    for table in (tables.session_states, tables.sessions, tables.turns, tables.window_turns):
        assert rows(store, table) == []


def test_rollups_computed_during_an_erasure_lose_the_session_again(
    store: Store, other: Store
) -> None:
    ended = [batches.turn(0), batches.turn(1), batches.end()]
    kept = [batches.turn(0, session_id="t"), batches.turn(1, session_id="t")]
    store.commit(batches.process([*ended, *kept, batches.end(session_id="t")]))
    with meanwhile(store, "INSERT INTO rollup_cells", lambda: erase(other)):
        next(rollups.update(store))
    list(rollups.update(store))
    assert {row["session_id"] for row in rows(store, tables.rollup_sessions)} == {"t"}
    updated = [rows(store, table) for table in (tables.rollup_cells, tables.rollup_turn_days)]
    rollups.rebuild(store)
    assert updated == [rows(store, t) for t in (tables.rollup_cells, tables.rollup_turn_days)]


def test_rollups_of_a_changed_session_do_not_deadlock_with_its_erasure(
    store: Store, other: Store
) -> None:
    store.commit(batches.process([batches.turn(0), batches.turn(1), batches.end()]))
    list(rollups.update(store))
    with store.transaction() as connection:
        connection.execute(sa.insert(tables.rollup_marks), [{"session_id": "s"}])
    with meanwhile(store, "INSERT INTO rollup_sessions", lambda: erase(other)):
        list(rollups.update(store))
    list(rollups.update(store))
    for table in (tables.rollup_sessions, tables.rollup_turns, tables.rollup_marks):
        assert rows(store, table) == []


def test_a_deadlock_is_an_error_after_which_a_transaction_can_be_repeated(
    store: Store, other: Store
) -> None:
    named = [batches.turn(0, session_id=name) for name in ("s", "t")]
    store.commit(batches.process(named))

    locked = threading.Barrier(2)

    def lock_both(one: Store, first: str, second: str) -> None:
        update = sa.update(tables.sessions).values(team="x")
        with one.transaction() as connection:
            connection.execute(update.where(tables.sessions.c.session_id == first))
            locked.wait(LONGEST_WAIT)
            connection.execute(update.where(tables.sessions.c.session_id == second))

    with ThreadPoolExecutor(2) as threads:
        both = [
            threads.submit(lock_both, store, "s", "t"),
            threads.submit(lock_both, other, "t", "s"),
        ]
    failures = [problem for one in both if (problem := one.exception()) is not None]
    assert [type(problem) for problem in failures] == [RolledBack]
    assert "try again" in str(failures[0])


def test_an_erasure_is_repeated_after_a_deadlock(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.commit(batches.process([batches.turn(0)]))
    deletions = [erasure.delete_sessions]

    def fail_once(connection: sa.Connection, session_ids: list[str]) -> Counter[str]:
        if deletions:
            deletions.pop()(connection, session_ids)
            raise RolledBack("another transaction was in the way")
        return delete(connection, session_ids)

    delete = erasure.delete_sessions
    monkeypatch.setattr(erasure, "delete_sessions", fail_once)
    assert erasure.erase(store, ["s"], NOW).removed["turns"] == 1
    assert len(rows(store, tables.erasures)) == 1


@contextmanager
def meanwhile(store: Store, before: str, work: Callable[[], None]) -> Iterator[None]:
    """Start ``work`` in a thread once the block reaches the statement that begins with ``before``.

    The statement waits until the work has ended or waits for a lock.
    """
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as problem:  # noqa: BLE001  # raised below
            failures.append(problem)

    thread = threading.Thread(target=run)

    def pause(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.lstrip().startswith(before) and thread.ident is None:
            thread.start()
            give_up = time.monotonic() + LONGEST_WAIT
            while thread.is_alive() and not _waits(store) and time.monotonic() < give_up:
                time.sleep(0.02)

    sa.event.listen(store.engine, "before_cursor_execute", pause)
    try:
        yield
    finally:
        sa.event.remove(store.engine, "before_cursor_execute", pause)
        assert thread.ident is not None, f"no statement begins with {before}"
        thread.join()
    if failures:
        raise failures[0]


def _waits(store: Store) -> bool:
    with store.reading() as connection:
        return bool(connection.execute(sa.text(_WAITING)).scalar())
