"""Databases that releases left behind: one folder a release, with its dump and its events.

`database.sql.gz` is the SQLite database of that release's own worker and console after the events
of `before.jsonl` (one session that ended, one in progress, an alert that a supervisor answered, a
rating, a mute, an account with a token). `after.jsonl` has the rest of the session in progress.
"""

import gzip
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from stream_app.store.stream import schema
from stream_app.store.stream.repository import Store

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Released:
    """A release; ``revision`` is its newest migration."""

    version: str
    revision: str

    @property
    def folder(self) -> Path:
        return FOLDER / self.version

    def events(self, name: str) -> list[bytes]:
        """The events of `before` or `after`."""
        return (self.folder / f"{name}.jsonl").read_bytes().splitlines()

    def restore(self, store: Store, scratch: Path) -> None:
        """Fill an empty database, of either kind, as the release left it."""
        source = sqlite3.connect(scratch)
        source.executescript(gzip.decompress(self._dump).decode())
        source.close()
        schema.upgrade(store, self.revision)
        old = sa.create_engine(f"sqlite:///{scratch}")
        found = sa.MetaData()
        found.reflect(old)
        kept = sa.MetaData()
        kept.reflect(store.engine)
        with old.connect() as reading, store.engine.begin() as writing:
            for table in kept.sorted_tables:
                if table.name == "alembic_version":
                    continue
                rows = [
                    dict(row)
                    for row in reading.execute(found.tables[table.name].select()).mappings()
                ]
                if rows:
                    writing.execute(table.insert(), rows)
            if store.engine.dialect.name == "postgresql":
                _continue_sequences(writing, kept)
        old.dispose()

    @property
    def _dump(self) -> bytes:
        return (self.folder / "database.sql.gz").read_bytes()


def _continue_sequences(connection: sa.Connection, kept: sa.MetaData) -> None:
    """Set PostgreSQL's sequences behind the rows that were copied with their numbers."""
    for table in kept.sorted_tables:
        for column in table.primary_key:
            name = connection.scalar(
                sa.select(sa.func.pg_get_serial_sequence(table.name, column.name))
            )
            highest = connection.scalar(sa.select(sa.func.max(column))) if name else None
            if highest is not None:
                connection.execute(sa.select(sa.func.setval(name, highest)))


RELEASES = (Released("0.1.0", "0010"),)
