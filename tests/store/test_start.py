"""A database that prevents a start is reported in one sentence, without a traceback."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from stream_app.errors import StoreError, StoreUnavailable
from stream_app.store.stream import schema
from stream_app.store.stream.repository import Store
from tests.store.batches import prepare
from tests.store.databases import open_store

Opened = Callable[[str], Store]


def start(store: Store) -> None:
    """The checks of a worker before it joins the group."""
    store.check_schema()
    prepare(store)
    schema.revisions(store)


@pytest.mark.parametrize("revision", [None, "0007", "0010"])
def test_a_missing_migration_is_named(empty_url: str, opened: Opened, revision: str | None) -> None:
    store = opened(empty_url)
    if revision is not None:
        schema.upgrade(store, revision)
    with pytest.raises(StoreError, match="run `rapport db upgrade`; missing: ") as refused:
        start(store)
    assert not isinstance(refused.value, StoreUnavailable)
    schema.upgrade(store)
    start(store)


def test_a_newer_schema_is_accepted(store: Store) -> None:
    """As during a rolling upgrade."""
    with store.engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE turns ADD COLUMN later INTEGER"))
    start(store)


@contextmanager
def cutting(port: int, after: int) -> Iterator[int]:
    """A proxy that closes each connection after a number of bytes from the server."""
    listener = socket.create_server(("127.0.0.1", 0))
    carrying: list[threading.Thread] = []

    def forward(source: socket.socket, sink: socket.socket, most: int) -> None:
        try:
            while most > 0 and (data := source.recv(min(4096, most))):
                sink.sendall(data)
                most -= len(data)
        except OSError:
            pass
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def carry(client: socket.socket, server: socket.socket) -> None:
        with client, server:
            asking = threading.Thread(target=forward, args=(client, server, 2**31))
            asking.start()
            forward(server, client, after)
            asking.join()

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", port))
            carrying.append(threading.Thread(target=carry, args=(client, server)))
            carrying[-1].start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in carrying:
            thread.join()


@pytest.mark.parametrize("after", [0, 100, 400, 800, 1500, 3000, 6000, 12_000])
def test_a_lost_connection_is_reported_in_one_sentence(server: Any, after: int) -> None:
    url = server.new_database()
    whole = open_store(url)
    schema.upgrade(whole)
    whole.close()
    with cutting(server.port, after) as port:
        store = open_store(url.replace(str(server.port), str(port)))
        with pytest.raises(StoreUnavailable):
            start_often(store)
        store.engine.dispose()


def start_often(store: Store) -> None:
    for _ in range(100):
        start(store)


@pytest.mark.parametrize("command", [["worker"], ["web"], ["people", "list"]])
def test_commands_end_with_one_line(tmp_path: Path, command: list[str]) -> None:
    environment = {
        **os.environ,
        "RAPPORT_DATABASE_URL": f"sqlite:///{tmp_path}/empty.db",
        "RAPPORT_TOPIC_PARTITIONS": "0",
    }
    ended = subprocess.run(
        [sys.executable, "-m", "stream_app.cli", *command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 1
    assert "run `rapport db upgrade`" in ended.stderr
    assert "Traceback" not in ended.stderr + ended.stdout
