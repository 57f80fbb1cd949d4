"""Where an installation's keys come from: settings, or files next to an SQLite database.

With PostgreSQL the keys must be set. Next to an SQLite database the files ``rapport.db.master-key``
and ``rapport.db.pseudonym-key`` are created when they are first needed.
"""

from pathlib import Path
from typing import Final

from msgspec import Struct
from sqlalchemy import URL

from stream_app.sealing.keyring import MasterKeys
from stream_app.sealing.sources import KeySource

MASTER_KEY: Final = "MASTER_KEY"
PSEUDONYM_KEY: Final = "PSEUDONYM_KEY"
IN_MEMORY: Final = ":memory:"
URI: Final = "file:"


class Secrets(Struct, frozen=True):
    """``master`` wraps the keys of sessions; ``pseudonym`` makes pseudonyms."""

    master: MasterKeys
    pseudonym: KeySource


def secrets_of(
    url: URL, master: KeySource | None = None, pseudonym: KeySource | None = None
) -> Secrets:
    """The given key sources; missing ones default to files next to an SQLite database."""
    return Secrets(
        MasterKeys(master or _default(url, MASTER_KEY)), pseudonym or _default(url, PSEUDONYM_KEY)
    )


def sqlite_file(url: URL) -> Path | None:
    """The file of an SQLite database; None for one in memory or given as a URI, and for others."""
    name = url.database or IN_MEMORY
    if url.get_backend_name() != "sqlite" or name == IN_MEMORY or name.startswith(URI):
        return None
    return Path(name)


def _default(url: URL, setting: str) -> KeySource:
    file = sqlite_file(url)
    if url.get_backend_name() != "sqlite" or (url.database or "").startswith(URI):
        return KeySource(setting)
    if file is None:
        return KeySource.in_memory(setting)
    suffix = setting.lower().replace("_", "-")
    return KeySource(setting, file=file.with_name(f"{file.name}.{suffix}"), create=True)
