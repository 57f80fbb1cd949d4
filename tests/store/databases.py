"""Databases with the newest schema: migrated once per process, then copied."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from servers.postgres import Server
from stream_app.sealing.envelope import new_key
from stream_app.sealing.sources import KeySource, as_text
from stream_app.store.stream import repository, schema
from stream_app.store.stream.repository import Store

MASTER, PSEUDONYM = as_text(new_key()), as_text(new_key())
"""Keys of all PostgreSQL databases in tests; SQLite databases have key files."""


def open_store(url: str, **options: Any) -> Store:
    """Open a database with its keys."""
    if url.startswith("postgresql"):
        options.setdefault("master", KeySource("MASTER_KEY", MASTER))
        options.setdefault("pseudonym", KeySource("PSEUDONYM_KEY", PSEUDONYM))
    return repository.open_store(url, **options)


def keys(url: str) -> dict[str, SecretStr]:
    """Settings of the same keys for a process."""
    if not url.startswith("postgresql"):
        return {}
    return {"master_key": SecretStr(MASTER), "pseudonym_key": SecretStr(PSEUDONYM)}


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
