"""Connections to PostgreSQL: reading takes no transaction, closed ones are replaced."""

from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa

from servers.postgres import Server
from stream_app.errors import StoreUnavailable
from stream_app.store.database import connection as connections
from stream_app.store.stream.repository import Store
from tests.store import databases
from tests.store.databases import open_store


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    opened = open_store(databases.postgresql(server), connections=1)
    yield opened
    opened.close()


PID = sa.text("SELECT pg_backend_pid()")


def state_of(server: Server, pid: int) -> str:
    with psycopg.connect(server.url()) as other:
        row = other.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()
    assert row is not None
    return str(row[0])


def test_reading_holds_no_transaction_and_the_next_writer_has_one(
    server: Server, store: Store
) -> None:
    with store.reading() as connection:
        pid = connection.scalar(PID)
        assert state_of(server, pid) == "idle"
    with store.transaction() as connection:
        assert connection.scalar(PID) == pid
        assert state_of(server, pid) == "idle in transaction"


def test_what_a_failed_transaction_wrote_is_not_there(store: Store) -> None:
    """The same connection was used for reading before."""
    with store.reading() as connection:
        connection.execute(PID)
    with pytest.raises(RuntimeError):
        _write_and_fail(store)
    made = sa.text("SELECT count(*) FROM installation WHERE name = 'made'")
    with store.reading() as connection:
        assert connection.scalar(made) == 0


def _write_and_fail(store: Store) -> None:
    with store.transaction() as connection:
        connection.execute(sa.text("INSERT INTO installation (name, value) VALUES ('made', 'up')"))
        raise RuntimeError


def test_connections_are_kept_after_a_burst_and_the_latest_is_used_first(server: Server) -> None:
    opened = open_store(databases.postgresql(server), connections=3, overflow=0)
    with opened.reading() as one, opened.reading() as two, opened.reading() as three:
        burst = [each.scalar(PID) for each in (one, two, three)]
    later = []
    for _ in range(3):
        with opened.reading() as connection:
            later.append(connection.scalar(PID))
    with opened.reading() as one, opened.reading() as two, opened.reading() as three:
        again = {each.scalar(PID) for each in (one, two, three)}
    opened.close()
    assert len(set(later)) == 1
    assert again == set(burst)


def test_a_connection_that_was_closed_while_idle_is_replaced(
    server: Server, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.reading() as connection:
        pid = connection.scalar(PID)
    _end(server, pid)
    monkeypatch.setattr(connections, "PING_AFTER", 0.0)
    with store.reading() as connection:
        assert connection.scalar(PID) != pid


def test_one_that_was_closed_just_now_is_reported_once(server: Server, store: Store) -> None:
    with store.reading() as connection:
        pid = connection.scalar(PID)
    _end(server, pid)
    with pytest.raises(StoreUnavailable), store.reading() as connection:
        connection.execute(PID)
    with store.reading() as connection:
        assert connection.scalar(PID) != pid


def _end(server: Server, pid: int) -> None:
    with psycopg.connect(server.url(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
