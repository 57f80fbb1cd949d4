"""The data keys of sessions, stored wrapped by a master key that is outside the database.

Text and state of a session are encrypted with its data key before they are stored. Erasing the
session deletes the key, so that remaining copies cannot be decrypted. The reason of a mute has its
own key, under the mute's id.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import sqlalchemy as sa
import structlog
from sqlalchemy import Connection

from stream_app.errors import SealingError, StaleState
from stream_app.sealing.envelope import is_sealed, new_key, seal_text, unseal_text
from stream_app.sealing.keyring import MasterKeys, Wrapped
from stream_app.store.database import tables
from stream_app.store.database.any_of import IDS, any_of
from stream_app.store.database.connection import Database
from stream_app.store.database.rows import Row
from stream_app.store.database.statements import insert_new

log = structlog.get_logger(__name__)

REWRAPPED_AT_A_TIME: Final = 500
_OF_SESSIONS: Final = sa.select(tables.session_keys).where(
    any_of(tables.session_keys.c.session_id, IDS)
)


class SessionKeys:
    """Creates, loads and rewraps data keys; part of the store."""

    def __init__(self, database: Database, master: MasterKeys) -> None:
        self._database = database
        self.master = master
        self._insert = insert_new(tables.session_keys, database.engine.dialect.name)

    def check(self, *, create: bool = True) -> None:
        """Check that there is a master key; with ``create``, create a missing file next to SQLite.

        Raises:
            SealingError: no key is set, or the file is missing although it has been used.
        """
        if self.master.source.is_missing:
            with self._database.reading() as connection:
                used = connection.scalar(sa.select(tables.session_keys.c.master_key).limit(1))
            if used is not None:
                raise SealingError(
                    f"the key file {self.master.source.file} is missing, and the database has "
                    f"text encrypted under the master key {used}: restore the file"
                )
        if create:
            self.master.source.read()

    def load(self, connection: Connection, session_ids: Sequence[str]) -> dict[str, bytes]:
        """Load the data keys of these sessions; sessions without one are left out.

        Raises:
            SealingError: a master key is missing.
        """
        if not session_ids:
            return {}
        found = connection.execute(_OF_SESSIONS, {IDS: session_ids})
        return {
            row.session_id: self.master.unwrap(Wrapped(row.master_key, row.wrapped), row.session_id)
            for row in found
        }

    def create(self, session_id: str, now: datetime) -> tuple[bytes, Row]:
        """Create a data key; return it and its row."""
        key = new_key()
        wrapped = self.master.wrap(key, session_id)
        return key, {
            "session_id": session_id,
            "master_key": wrapped.master_key,
            "wrapped": wrapped.sealed,
            "created_at": now,
        }

    def write(self, connection: Connection, new: list[Row]) -> None:
        """Insert new keys.

        Raises:
            StaleState: another process has stored a key for one of the sessions.
        """
        if new and self._insert.run(connection, new) != len(new):
            raise StaleState("another process has created the key of one of the sessions")

    def get_or_create(self, connection: Connection, session_id: str, now: datetime) -> bytes | None:
        """Return a stored session's key, creating it if needed; None for an unknown session.

        Locks the session's row, so that it cannot be erased before the transaction ends.
        """
        table = tables.sessions
        held = sa.select(table.c.session_id).where(table.c.session_id == session_id)
        if connection.scalar(held.with_for_update(read=True, key_share=True)) is None:
            return None
        found = self.load(connection, [session_id])
        if session_id not in found:
            self._insert.run(connection, [self.create(session_id, now)[1]])
            found = self.load(connection, [session_id])
        return found[session_id]

    def rewrap(self, limit: int = REWRAPPED_AT_A_TIME) -> int:
        """Rewrap at most ``limit`` keys with the active master key; return their number.

        Raises:
            SealingError: a master key is missing.
        """
        table, active = tables.session_keys, self.master.active
        query = sa.select(table).where(table.c.master_key != active).limit(limit)
        with self._database.transaction() as connection:
            old = connection.execute(query.with_for_update()).all()
            for row in old:
                key = self.master.unwrap(Wrapped(row.master_key, row.wrapped), row.session_id)
                wrapped = self.master.wrap(key, row.session_id)
                connection.execute(
                    sa.update(table)
                    .where(table.c.session_id == row.session_id)
                    .values(master_key=wrapped.master_key, wrapped=wrapped.sealed)
                )
        return len(old)

    def counts(self) -> dict[str, int]:
        """Number of data keys by the id of the master key that wrapped them."""
        table = tables.session_keys
        query = sa.select(table.c.master_key, sa.func.count().label("wrapped_keys")).group_by(
            table.c.master_key
        )
        with self._database.reading() as connection:
            return {row.master_key: row.wrapped_keys for row in connection.execute(query)}


def place(column: sa.Column[str] | sa.Column[bytes], *identity: str | int) -> str:
    """The place of a value, as associated data: its column and the identity of its row."""
    return "\0".join((f"{column.table.name}.{column.name}", *map(str, identity)))


def seal_optional(key: bytes, text: str | None, where: str) -> str | None:
    """Encrypt a text, if there is one."""
    return None if text is None else seal_text(key, text, where)


def unseal_or_none(key: bytes | None, stored: str | None, where: str) -> str | None:
    """Decrypt a stored text, if there is one; None without its key, or if it is damaged."""
    if stored is None or (key is None and is_sealed(stored)):
        return None
    try:
        return unseal_text(key, stored, where)
    except SealingError as problem:
        log.error("text.unreadable", place=where.partition("\0")[0], problem=str(problem))
        return None
