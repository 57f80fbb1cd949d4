"""Loads the pseudonym key from outside the database, and checks that it is the right one.

Release 0.1 stored the key in the table ``installation``. It is moved to the file next to an SQLite
database automatically, and to a configured file by ``rapport keys move``. The database keeps a
fingerprint, so that no other key is used by mistake.
"""

from collections.abc import Callable, Sequence
from typing import Final

import sqlalchemy as sa
import structlog
from sqlalchemy import Connection

from stream_app.errors import SealingError
from stream_app.sealing import sources
from stream_app.sealing.envelope import new_key
from stream_app.sealing.keyring import key_id
from stream_app.sealing.sources import KeySource
from stream_app.store.database import tables
from stream_app.store.database.connection import Database
from stream_app.store.database.privacy import pseudonym_of
from stream_app.store.keys import pseudonyms

log = structlog.get_logger(__name__)

IN_DATABASE: Final = "pseudonym_key"
FINGERPRINT: Final = "pseudonym_key_id"
IS_INSIDE: Final = (
    "the pseudonym key is still in the database, where every backup holds it: set "
    "RAPPORT_PSEUDONYM_KEY_FILE and run `rapport keys move` (docs/security.md, Keys)"
)


def read(database: Database, source: KeySource) -> list[bytes]:
    """Load the chain of keys that makes pseudonyms; create it next to a new SQLite database.

    Raises:
        SealingError: there is none, or not the one of this database.
    """
    inside, fingerprint = _stored(database)
    if inside is not None:
        return _moved(database, source, inside)
    _check_file(source, fingerprint)
    keys = source.read()
    with database.transaction() as connection:
        row = {"name": FINGERPRINT, "value": fingerprint_of(keys)}
        database.upsert(connection, tables.installation, [row], keep=True)
    _check(database, source, keys)
    return keys


def check(database: Database, source: KeySource) -> None:
    """Check that the keys are those of this database; changes nothing.

    Raises:
        SealingError: they are not, they are missing, or the key is still in the database.
    """
    inside, fingerprint = _stored(database)
    if inside is not None:
        raise SealingError(IS_INSIDE)
    _check_file(source, fingerprint)
    if fingerprint is not None:
        _check(database, source, source.read())


def move(database: Database, source: KeySource) -> None:
    """Move the key from the database to the configured file.

    Raises:
        SealingError: it is not in the database, or no file is set.
    """
    inside, _ = _stored(database)
    if inside is None:
        raise SealingError("the pseudonym key is not in the database: there is nothing to move")
    if source.file is None:
        raise SealingError(
            "set RAPPORT_PSEUDONYM_KEY_FILE to the file that shall hold the pseudonym key"
        )
    sources.create(source.file, inside)
    _moved(database, source, inside)


def rotate(database: Database, source: KeySource) -> int:
    """Append a key to the chain and replace all stored pseudonyms; return their number.

    Names are not stored, so the new key is applied to the old pseudonyms; applying the keys of the
    chain to a name in order gives the same result. Workers and consoles must be stopped. After an
    interruption, it continues with the key that is already in the file.

    Raises:
        SealingError: the keys are not those of this database, or not in a file.
    """
    keys = extend(database, source)
    with database.transaction() as connection:
        return apply(database, connection, keys)


def extend(database: Database, source: KeySource) -> list[bytes]:
    """The chain with a new key, which is appended to the file unless an earlier run did so.

    Raises:
        SealingError: the keys are not those of this database, or not in a file.
    """
    keys = source.read()
    _, fingerprint = _stored(database)
    if len(keys) > 1 and fingerprint == fingerprint_of(keys[:-1]):
        return keys
    _check(database, source, keys)
    if source.file is None:
        raise SealingError(
            f"RAPPORT_{source.setting} holds the key: append one of `rapport keys new` to it, "
            "after a comma, and run this again"
        )
    keys = [*keys, new_key()]
    sources.replace(source.file, keys)
    return keys


def apply(database: Database, connection: Connection, keys: Sequence[bytes]) -> int:
    """Replace all stored pseudonyms by those of the chain's last key; return their number."""
    count = pseudonyms.replace(connection, renaming(keys))
    row = {"name": FINGERPRINT, "value": fingerprint_of(keys)}
    database.upsert(connection, tables.installation, [row], keep=False)
    return count


def renaming(keys: Sequence[bytes]) -> Callable[[str], str]:
    """Return the function that renews a pseudonym that lacks the chain's last key."""
    return lambda old: pseudonym_of(old, keys[-1])


def fingerprint_of(keys: Sequence[bytes]) -> str:
    """An identifier of a chain of keys that does not reveal them."""
    return key_id(b"".join(keys))


def _moved(database: Database, source: KeySource, inside: bytes) -> list[bytes]:
    if not source.is_set:
        raise SealingError(IS_INSIDE)
    if source.creates and source.file is not None:
        sources.create(source.file, inside)
    keys = source.read()
    if list(keys) != [inside]:
        raise SealingError(
            "RAPPORT_PSEUDONYM_KEY or its file holds another key than the database, whose "
            "pseudonyms were made with its own: set the file to a new name and run "
            "`rapport keys move`"
        )
    table = tables.installation
    with database.transaction() as connection:
        row = {"name": FINGERPRINT, "value": fingerprint_of(keys)}
        database.upsert(connection, table, [row], keep=False)
        connection.execute(sa.delete(table).where(table.c.name == IN_DATABASE))
    log.warning("pseudonym_key.moved", file=str(source.file) if source.file else None)
    return keys


def _check_file(source: KeySource, fingerprint: str | None) -> None:
    if source.is_missing and fingerprint is not None:
        raise SealingError(
            f"the key file {source.file} is missing, and the database has pseudonyms made with "
            "its key: restore the file"
        )


def _check(database: Database, source: KeySource, keys: Sequence[bytes]) -> None:
    _, fingerprint = _stored(database)
    if fingerprint != fingerprint_of(keys):
        raise SealingError(
            f"RAPPORT_{source.setting} or its file is not the key that made the pseudonyms of this "
            f"database: it has the fingerprint {fingerprint_of(keys)}, the database needs "
            f"{fingerprint}"
        )


def _stored(database: Database) -> tuple[bytes | None, str | None]:
    """The key, if it is still in the database, and the fingerprint of the current chain."""
    table = tables.installation
    query = sa.select(table).where(table.c.name.in_((IN_DATABASE, FINGERPRINT)))
    with database.reading() as connection:
        found = {row.name: row.value for row in connection.execute(query)}
    inside = found.get(IN_DATABASE)
    return bytes.fromhex(inside) if inside is not None else None, found.get(FINGERPRINT)
