"""Brings the database to the newest schema with the Alembic scripts in ``migrations/``."""

import importlib.resources

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from stream_app.store.connection import worded
from stream_app.store.repository import Store


def config(store: Store) -> Config:
    """Alembic's configuration over an open store."""
    settings = Config()
    settings.set_main_option("script_location", str(importlib.resources.files("migrations")))
    settings.attributes["engine"] = store.engine
    return settings


def upgrade(store: Store, revision: str = "head") -> None:
    """Apply the migrations that are missing.

    Raises:
        StoreError: the database refused one, or was lost on the way.
    """
    with worded():
        command.upgrade(config(store), revision)


def downgrade(store: Store, revision: str) -> None:
    """Take migrations back down to ``revision``."""
    with worded():
        command.downgrade(config(store), revision)


def revisions(store: Store) -> tuple[str | None, str | None]:
    """The revision of the database and the newest one.

    Raises:
        StoreUnavailable: the database cannot be reached.
    """
    with store.reading() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
    return current, ScriptDirectory.from_config(config(store)).get_current_head()
