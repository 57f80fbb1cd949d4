"""Which errors can be retried, and what their messages may contain."""

import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from servers.postgres import Server
from stream_app.contracts.events import decode
from stream_app.core.session.ports import Message
from stream_app.errors import ContractError, StoreError, StoreUnavailable
from stream_app.store.database import tables
from stream_app.store.database.connection import masked_url
from stream_app.store.stream import schema
from stream_app.store.stream.repository import Store
from stream_app.worker.kafka.broker import free_port
from tests.store.batches import BUNDLE, prepare, process, turn
from tests.store.databases import open_store
from tests.store.reading import contents, rows

SECRET = "zanzibar"


def words_of(problem: BaseException) -> str:
    """Everything a log would show of an error, including its causes."""
    return "".join(traceback.format_exception(problem))


def test_a_failing_statement_does_not_quote_its_rows(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """Make the table reject every row; PostgreSQL then quotes the row in its message."""
    with store.engine.begin() as connection:
        if store.engine.dialect.name == "postgresql":
            connection.execute(sa.text("ALTER TABLE turns ADD CONSTRAINT few CHECK (seq < 0)"))
        else:
            connection.execute(
                sa.text(
                    "CREATE TRIGGER few BEFORE INSERT ON turns "
                    "BEGIN SELECT RAISE(ABORT, 'no more turns'); END"
                )
            )
    result = process([turn(text=SECRET, speaker_id=SECRET, session_id=SECRET)])
    with caplog.at_level(logging.DEBUG), pytest.raises(StoreError) as refused:
        store.commit(result, [Message("t", b"", SECRET.encode())])
    assert not isinstance(refused.value, StoreUnavailable)
    assert SECRET not in words_of(refused.value)
    assert SECRET not in caplog.text
    assert rows(store, tables.session_states) == []
    assert rows(store, tables.outbox) == []


def test_an_invalid_value_is_rejected_and_not_quoted(store: Store) -> None:
    result = process([turn(text=SECRET)])
    [score] = result.session_scores
    with store.engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE sessions"))
        connection.execute(sa.text("CREATE TABLE sessions (session_id INTEGER PRIMARY KEY)"))
    with pytest.raises(StoreError) as refused:
        store.commit(result)
    assert SECRET not in words_of(refused.value)
    assert score.session_id not in str(refused.value).split()


def test_an_unreachable_server_is_unavailable() -> None:
    away = open_store(f"postgresql://rapport:{SECRET}@127.0.0.1:{free_port()}/rapport")
    for call in (
        away.ping,
        lambda: prepare(away),
        lambda: away.commit(process([turn()])),
        lambda: away.load_states(["s"], BUNDLE),
    ):
        with pytest.raises(StoreUnavailable) as refused:
            call()
        assert SECRET not in words_of(refused.value)
    away.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        SECRET,
        f"mysql://u:{SECRET}@host/db",
        f"postgres://u:{SECRET}@host/db",
        f"postgresql://u:p@host:{SECRET}/db",
        "sqlite:////dev/null/rapport.db",
    ],
)
def test_a_bad_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(StoreError) as refused:
        open_store(url)
    assert not isinstance(refused.value, StoreUnavailable)
    assert SECRET not in words_of(refused.value)


@pytest.mark.parametrize("driver", ["postgresql", "postgresql+psycopg2", "postgresql+asyncpg"])
def test_any_driver_name_of_postgresql_opens_with_ours(driver: str) -> None:
    store = open_store(f"{driver}://host/db")
    assert store.engine.driver == "psycopg"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:{SECRET}@host/db",
        f"postgresql://host/db?user=u&password={SECRET}",
        f"postgresql://host/db?sslpassword={SECRET}",
        f"postgresql://u:p@host:{SECRET}/db",
        SECRET,
    ],
)
def test_masked_urls_contain_no_secrets(url: str) -> None:
    assert SECRET not in masked_url(url)


def test_a_url_without_secrets_is_not_changed() -> None:
    assert masked_url("sqlite:///rapport.db") == "sqlite:///rapport.db"
    assert masked_url("postgresql://u@h:5/db?connect_timeout=3").endswith(
        "u@h:5/db?connect_timeout=3"
    )


def test_a_locked_sqlite_database_is_unavailable_until_unlocked(
    tmp_path: Path, opened: Callable[[str], Store]
) -> None:
    url = f"sqlite:///{tmp_path}/test.db"
    store, holder = opened(url), opened(url)
    schema.upgrade(store)
    prepare(store)
    result = process([turn()])
    with store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout=50")
        connection.rollback()
    with holder.engine.begin(), pytest.raises(StoreUnavailable):
        store.commit(result)
    store.commit(result)
    assert len(rows(store, tables.turns)) == 1


@pytest.fixture
def restarted(server: Server) -> Iterator[Server]:
    """The server, restarted after the test in any case."""
    yield server
    server.stop()
    server.start()


def test_a_commit_succeeds_after_the_server_has_restarted(
    restarted: Server, opened: Callable[[str], Store]
) -> None:
    store = opened(restarted.new_database())
    schema.upgrade(store)
    prepare(store).commit(process([turn(0)]))
    states = store.load_states(["s"], BUNDLE)
    result = process([turn(1, text=SECRET), turn(2)], states)
    messages = [Message("t", b"s", b"{}")]
    before = contents(store)
    restarted.stop()
    for _ in range(2):
        with pytest.raises(StoreUnavailable) as refused:
            store.commit(result, messages)
        assert SECRET not in words_of(refused.value)
    assert states["s"].version == 1
    restarted.start()
    assert contents(store) == before
    assert store.commit(result, messages) is not None
    assert [row["seq"] for row in rows(store, tables.turns)] == [0, 1, 2]
    assert rows(store, tables.session_states)[0]["version"] == 2


@pytest.mark.parametrize("before", ["UPDATE", "INSERT", "COPY"])
def test_a_connection_lost_inside_a_transaction_raises_store_unavailable(
    server: Server, opened: Callable[[str], Store], before: str
) -> None:
    store, killer = opened(server.new_database()), opened(server.url())
    schema.upgrade(store)
    prepare(store)
    store.commit(process([turn(0)]))
    result = process([turn(1)], store.load_states(["s"], BUNDLE))
    cuts = []

    def cut(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if not statement.startswith(before):
            return
        cuts.append(statement)
        with killer.engine.connect() as connection:
            connection.execute(
                sa.text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :d"
                ),
                {"d": store.engine.url.database},
            )

    sa.event.listen(store.engine, "before_cursor_execute", cut)
    with pytest.raises(StoreUnavailable):
        store.commit(result)
    sa.event.remove(store.engine, "before_cursor_execute", cut)
    assert len(cuts) == 1
    store.commit(result)
    assert len(rows(store, tables.turns)) == 2


@pytest.mark.parametrize("where", ["text", "session_id", "speaker_id", "turn_id", "channel"])
def test_a_nul_character_does_not_reach_the_store(where: str) -> None:
    with pytest.raises(ContractError) as refused:
        decode(turn(**{where: "a\x00b"}))
    assert refused.value.code == "nul-byte"
