"""Migrates the database schema with the Alembic scripts in ``migrations/``.

Alembic is imported when it is used: processes that only read or write start without it.
"""

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa
import structlog

from stream_app.errors import StoreError, StoreUnavailable
from stream_app.store.database.connection import translate_errors
from stream_app.store.database.secrets import sqlite_file
from stream_app.store.stream.repository import Store

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

log = structlog.get_logger(__name__)

PATIENCE: Final = 600.0
"""Seconds to wait for another process that changes the schema."""
POLL: Final = 0.2
LOCK: Final = 0x7261_7070_6F72_74
"""Number of PostgreSQL's advisory lock, which is counted by database: "rapport"."""
EACH_MIGRATION: Final = "3feda2c3"
"""The last commit with each of the migrations that one has replaced since."""
LOCK_SUFFIX: Final = ".upgrade-lock"
"""Appended to an SQLite file's name: a file that is locked meanwhile, and stays."""
_PACKAGE: Final = Path(__file__).parents[2]


def scripts() -> Path:
    """The folder of the migrations: in the installed package, or at the top of the repository."""
    installed = _PACKAGE / "migrations"
    return installed if installed.is_dir() else _PACKAGE.parent / "migrations"


def config(store: Store) -> "Config":
    """Alembic's configuration for an open store."""
    from alembic.config import Config  # noqa: PLC0415

    settings = Config()
    settings.set_main_option("script_location", str(scripts()))
    settings.attributes["engine"] = store.engine
    return settings


@contextmanager
def one_at_a_time(store: Store, patience: float = PATIENCE) -> Iterator[None]:
    """Change the schema in one process at a time; the others wait.

    Raises:
        StoreUnavailable: another process is still at it after ``patience`` seconds.
    """
    if store.engine.dialect.name == "postgresql":
        with store.transaction() as connection:
            # of the transaction: a pooler may give the next one another session
            connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
            query = sa.select(sa.func.pg_try_advisory_xact_lock(LOCK))
            _wait(lambda: bool(connection.scalar(query)), patience)
            yield
        return
    file = sqlite_file(store.engine.url)
    if file is None:  # in memory: no other process has it
        yield
        return
    with file.with_name(f"{file.name}{LOCK_SUFFIX}").open("ab") as lock:
        _wait(lambda: _locked(lock.fileno()), patience)
        yield


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(taken: Callable[[], bool], patience: float) -> None:
    give_up = time.monotonic() + patience
    told = False
    while not taken():
        if time.monotonic() > give_up:
            raise StoreUnavailable(
                f"another process has been changing the schema for {patience:.0f} s: wait for its "
                "`rapport db upgrade`, then try again"
            )
        if not told:
            log.info("schema.waiting", why="another process is changing the schema")
            told = True
        time.sleep(POLL)


def upgrade(store: Store, revision: str = "head") -> None:
    """Apply all pending migrations.

    Raises:
        StoreError: a migration failed, the connection was lost, or the schema is one between two
            releases.
    """
    from alembic import command  # noqa: PLC0415

    _refuse_unknown(store)
    with translate_errors():
        command.upgrade(config(store), revision)


def _refuse_unknown(store: Store) -> None:
    current, head = revisions(store)
    if current is not None and head is not None and current < head and current not in _known():
        raise StoreError(
            f"the schema is at {current}, between release 0.1.0 and this one: upgrade the database "
            f"with commit {EACH_MIGRATION} first, then with this release"
        )


def downgrade(store: Store, revision: str) -> None:
    """Revert migrations down to ``revision``."""
    from alembic import command  # noqa: PLC0415

    with translate_errors():
        command.downgrade(config(store), revision)


def revisions(store: Store) -> tuple[str | None, str | None]:
    """The revisions of the database and of the newest migration.

    Raises:
        StoreUnavailable: the database cannot be reached.
    """
    from alembic.runtime.migration import MigrationContext  # noqa: PLC0415

    with store.reading() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
    return current, newest()


@cache
def newest() -> str | None:
    """The newest migration of this release; reading all takes longer than the rest of a page."""
    return _scripts().get_current_head()


def _known() -> set[str]:
    return {script.revision for script in _scripts().walk_revisions()}


def _scripts() -> "ScriptDirectory":
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    settings = Config()
    settings.set_main_option("script_location", str(scripts()))
    return ScriptDirectory.from_config(settings)
