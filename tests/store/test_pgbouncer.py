"""A real PgBouncer in transaction mode: every transaction may be in another session."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
import sqlalchemy as sa

from servers import pgbouncer
from servers.pgbouncer import Pooler
from servers.postgres import Server
from stream_app.analytics.views import schema as reporting
from stream_app.processes import doctor
from stream_app.settings import Settings
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from tests.store import batches, databases
from tests.store.reading import rows

CLIENTS = 6
ROUNDS = 8
"""More than the five after which the driver prepares a statement."""


@pytest.fixture(scope="module")
def pooler(server: Server) -> Iterator[Pooler]:
    program = pgbouncer.binary()
    if program is None:
        pytest.skip("pgbouncer is not installed (Debian package pgbouncer)")
    running = Pooler(program, server)
    yield running
    running.remove()


@pytest.fixture
def pooled_url(server: Server, pooler: Pooler) -> Iterator[str]:
    """An empty database through the pooler."""
    url = server.new_database()
    yield pooler.url(url)
    server.drop(url)


def test_many_clients_take_turns_on_few_sessions(pooled_url: str) -> None:
    made = databases.open_store(pooled_url)
    reporting.upgrade(made)
    batches.prepare(made)
    made.close()

    def work(number: int) -> None:
        store = batches.prepare(databases.open_store(pooled_url))
        states: dict[str, object] = {}
        for seq in range(ROUNDS):
            result = batches.process([batches.turn(seq, session_id=f"s{number}")], states)
            store.commit(result)
            states |= result.sessions
            store.ping()
            store.load_states([f"s{number}"], batches.BUNDLE)
        store.close()

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(work, range(CLIENTS)))
    store = databases.open_store(pooled_url)
    assert len(rows(store, tables.turns)) == CLIENTS * ROUNDS
    assert store.is_pooled()
    store.close()


def test_times_are_utc_in_every_session(pooled_url: str) -> None:
    """The server's own time zone is another."""
    stores = [databases.open_store(pooled_url) for _ in range(CLIENTS)]
    for _ in range(ROUNDS):
        for store in stores:
            with store.reading() as connection:
                assert connection.scalar(sa.text("SHOW timezone")) == "UTC"
    for store in stores:
        store.close()


def test_statements_are_prepared_only_without_a_pooler(server: Server, pooled_url: str) -> None:
    direct = server.url(pooled_url.rpartition("/")[2])
    for url, options, prepared in (
        (direct, {}, True),
        (direct, {"prepare": False}, False),
        (pooled_url, {}, False),
    ):
        store: Store = databases.open_store(url, **options)
        with store.reading() as connection:
            client = connection.connection.driver_connection
            assert isinstance(client, psycopg.Connection)
            assert (client.prepare_threshold is not None) == prepared
        assert store.is_pooled() == (url == pooled_url)
        store.close()


def test_doctor_recognises_it(pooled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = databases.open_store(pooled_url)
    reporting.upgrade(made)
    made.close()
    monkeypatch.setenv("RAPPORT_DATABASE_URL", pooled_url)
    settings = Settings().model_copy(update=databases.keys(pooled_url))
    assert "through a pooler: statements are not prepared" in doctor._database(settings)
