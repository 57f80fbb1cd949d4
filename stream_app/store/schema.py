"""Migrates the database schema with the Alembic scripts in ``migrations/``.

Alembic is imported when it is used: processes that only read or write start without it.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stream_app.store.connection import translate_errors
from stream_app.store.repository import Store

if TYPE_CHECKING:
    from alembic.config import Config

_PACKAGE: Final = Path(__file__).parents[1]


def scripts() -> Path:
    """The folder of the migrations: in the installed package, or at the top of the repository."""
    installed = _PACKAGE / "migrations"
    return installed if installed.is_dir() else _PACKAGE.parent / "migrations"


def config(store: Store, read_role: str | None = None) -> "Config":
    """Alembic's configuration for an open store."""
    from alembic.config import Config  # noqa: PLC0415

    settings = Config()
    settings.set_main_option("script_location", str(scripts()))
    settings.attributes["engine"] = store.engine
    if read_role:
        settings.attributes["read_role"] = read_role
    return settings


def upgrade(store: Store, revision: str = "head", read_role: str | None = None) -> None:
    """Apply all pending migrations; ``read_role`` is created on PostgreSQL.

    Raises:
        StoreError: a migration failed, or the connection was lost.
    """
    from alembic import command  # noqa: PLC0415

    with translate_errors():
        command.upgrade(config(store, read_role), revision)


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
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    settings = Config()
    settings.set_main_option("script_location", str(scripts()))
    return ScriptDirectory.from_config(settings).get_current_head()
