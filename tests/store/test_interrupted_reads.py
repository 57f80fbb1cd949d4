"""An exception between two rows of a result leaves the connection as good as new."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.errors import StoreUnavailable
from stream_app.store.database import tables
from stream_app.store.database.connection import READ_ONLY
from stream_app.store.stream.repository import Store
from stream_app.web.live.health import WebHealth
from stream_app.web.live.live_hub import Hub
from tests.store import databases

TABLE = tables.installation
Open = Callable[[Store], AbstractContextManager[Connection]]


@pytest.fixture(autouse=True)
def rows(store: Store) -> None:
    for name in range(3):
        write(store, f"row-{name}")


def write(store: Store, name: str) -> None:
    with store.transaction() as connection:
        store.upsert(connection, TABLE, [{"name": name, "value": ""}], keep=True)


def names(store: Store) -> set[str]:
    with store.reading() as connection:
        return {name for name in connection.scalars(sa.select(TABLE.c.name)) if "row" in name}


def interrupted(store: Store, begun: Open) -> Exception:
    """What it raises: who keeps it keeps the result, as a log or a reference cycle does."""
    try:
        with begun(store) as connection:
            found = connection.execute(sa.select(TABLE))
            next(iter(found))
            raise ValueError
    except ValueError as problem:
        return problem
    raise AssertionError


def interrupted_generator(store: Store) -> Iterator[str]:
    with store.reading() as connection:
        yield from connection.scalars(sa.select(TABLE.c.name))


@pytest.mark.parametrize(
    "begun",
    [
        Store.reading,
        Store.transaction,
        Store.single_statement,
        lambda store: store.reading(stream_results=True, max_row_buffer=1),
        lambda store: store.transaction(**{READ_ONLY: True}, yield_per=1),
    ],
    ids=["reading", "transaction", "single statement", "streamed", "in steps"],
)
def test_later_transactions_read_the_newest_rows_and_write(
    store: Store, other: Store, begun: Open
) -> None:
    kept = [interrupted(store, begun) for _ in range(3)]
    write(other, "row-of-other")
    assert "row-of-other" in names(store)
    write(store, "row-later")
    assert {"row-later", "row-of-other"} <= names(other)
    assert kept


def test_a_generator_that_is_not_finished_only_takes_its_own_connection(
    store: Store, other: Store
) -> None:
    unfinished = interrupted_generator(store)
    next(unfinished)
    write(other, "row-of-other")
    assert "row-of-other" in names(store)
    unfinished.close()
    write(store, "row-later")


def test_no_free_connection_is_unavailable(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.engine.pool, "_timeout", 0.05)
    taken = [interrupted_generator(store) for _ in range(15)]
    for each in taken:
        next(each)
    with pytest.raises(StoreUnavailable, match="all connections"):
        names(store)
    for each in taken:
        each.close()
    assert names(store)


def test_a_web_process_whose_requests_cannot_write_is_not_ready(tmp_path: Path) -> None:
    """Also if the connection of the probe can."""
    url = databases.sqlite(tmp_path / "rapport.db")
    probing, requests = databases.open_store(url), databases.open_store(url)
    health = WebHealth(probing, Hub(), requests)

    def refuse(*_: object) -> None:
        raise sa.exc.OperationalError("", {}, Exception("database is locked"))

    assert health.not_ready() == []
    sa.event.listen(requests.engine, "begin", refuse)
    with pytest.raises(StoreUnavailable):
        write(requests, "row")
    [reason] = health.not_ready()
    assert "database is locked" in reason
    sa.event.remove(requests.engine, "begin", refuse)
    assert health.not_ready() == []
    assert not requests.cannot_write
    for each in (probing, requests):
        each.close()
