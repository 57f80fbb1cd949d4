"""A server that became read-only is away: its connections are dropped, and calls are repeated."""

import time
from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa

from servers.postgres import Server
from stream_app.errors import StoreUnavailable
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from stream_app.web.live.health import WebHealth
from stream_app.web.live.live_hub import Hub
from tests.store import batches, databases
from tests.store.reading import rows


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    made = databases.postgresql(server)
    yield made
    server.drop(made)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = batches.prepare(databases.open_store(url))
    yield opened
    opened.close()


def fail_over(server: Server, url: str) -> None:
    """End all sessions; new ones are as those of a standby."""
    name = url.rpartition("/")[2]
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s",
            [name],
        )


def promote(server: Server, url: str) -> None:
    """New sessions can write; those that exist stay read-only."""
    name = url.rpartition("/")[2]
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")


def test_writing_is_unavailable_until_the_server_is_promoted_without_a_restart(
    server: Server, url: str, store: Store
) -> None:
    fail_over(server, url)
    for number in range(4):  # the first ones find their connection closed
        with pytest.raises(StoreUnavailable) as refused:
            store.commit(batches.process([batches.turn(session_id=f"s{number}")]))
        with pytest.raises(StoreUnavailable):
            People(store).add(Person("new", PersonRole.ANALYST), None)
    assert "the database is read-only" in str(refused.value)
    promote(server, url)
    store.commit(batches.process([batches.turn()]))
    assert len(rows(store, tables.turns)) == 1


def test_a_probe_says_so_and_recovers(server: Server, url: str, store: Store) -> None:
    health = WebHealth(databases.open_store(url, connections=1), Hub(), store)
    assert health.not_ready() == []
    fail_over(server, url)
    health.not_ready()
    [reason] = health.not_ready()
    assert "the database is read-only" in reason
    promote(server, url)
    assert health.not_ready() == []
    health.close()


def test_a_read_only_connection_among_others_is_dropped(
    server: Server, url: str, store: Store
) -> None:
    """Some were opened while the server was read-only, and have only read since then."""
    fail_over(server, url)
    with pytest.raises(StoreUnavailable):
        store.ping()
    with store.reading() as one, store.reading() as two:
        assert {one.scalar(sa.text("SHOW transaction_read_only")), two.scalar(sa.text("SELECT 1"))}
    promote(server, url)
    with pytest.raises(StoreUnavailable):
        store.commit(batches.process([batches.turn()]))
    store.commit(batches.process([batches.turn()]))
    store.ping()


def test_a_transaction_that_the_server_ended_is_unavailable(store: Store) -> None:
    def pause() -> None:
        with store.transaction() as connection:
            connection.execute(sa.text("SET LOCAL idle_in_transaction_session_timeout = 20"))
            time.sleep(0.2)
            connection.execute(sa.text("SELECT 1"))

    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            pause()
        store.ping()
