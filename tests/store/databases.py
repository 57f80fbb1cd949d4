"""Databases with the newest schema: the migrations run once in a process, then copies are made."""

import tempfile
from functools import cache
from pathlib import Path

from servers.postgres import Server
from stream_app.store import schema
from stream_app.store.repository import open_store


def sqlite(file: Path) -> str:
    """The URL of this file, which is made if it is not there."""
    if not file.exists():
        file.write_bytes(_migrated())
    return f"sqlite:///{file}"


def postgresql(server: Server) -> str:
    """The URL of a new database; `Server.drop` removes it."""
    return server.new_database(_migrated_on(server))


@cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory(prefix="rapport-schema-") as folder:
        file = Path(folder, "rapport.db")
        _upgrade(f"sqlite:///{file}")
        return file.read_bytes()


@cache
def _migrated_on(server: Server) -> str:
    url = server.new_database()
    _upgrade(url)
    return url


def _upgrade(url: str) -> None:
    store = open_store(url)
    schema.upgrade(store)
    store.close()
