"""Databases with the newest schema: migrated once per process, then copied."""

import tempfile
from functools import cache
from pathlib import Path

from servers.postgres import Server
from stream_app.store import schema
from stream_app.store.repository import open_store


def sqlite(file: Path) -> str:
    """The URL of a SQLite file, created if missing."""
    if not file.exists():
        file.write_bytes(_migrated())
    return f"sqlite:///{file}"


def postgresql(server: Server) -> str:
    """The URL of a new database; drop it with `Server.drop`."""
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
