"""Makes the reporting views, and brings a database to the newest schema with its views.

The views depend on the bundles that have scored; `rapport db upgrade` and `rapport db views`
regenerate them. A migration that changes a table finds no views in its way.
"""

import hashlib
from pathlib import Path
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection

from stream_app.analytics.views.columns import View
from stream_app.analytics.views.dialects import DIALECTS, quoted
from stream_app.analytics.views.views import all_views
from stream_app.inference.bundles import bundle as bundles
from stream_app.store.database import tables
from stream_app.store.stream import schema
from stream_app.store.stream.repository import Store

VIEWS_MADE: Final = "views"
READER: Final = "rapport_reader"
"""The role that may read the reporting views, which a migration creates; PostgreSQL."""
AGGREGATES: Final = "_aggregates"
"""Appended to the reading role's name: the role that may read only what hides small cells."""
OPEN_TO_AGGREGATES: Final = ("shown_", "operations_", "dim_date", "dim_bundle", "dim_head")
"""Views, by name or its beginning, that tell of no single counsellor, client or session."""
PREFIXES: Final = ("fact_", "dim_", "shown_", "operations_")


class Made(Struct, frozen=True):
    """How many views there are, and which reading roles are missing in the server."""

    views: int
    lacking_roles: list[str]


def upgrade(store: Store, bundle: Path | None = None) -> Made:
    """Apply the migrations that are missing and make the views; other processes wait.

    Args:
        store: the open store.
        bundle: a folder of a bundle that is going to score; the views have its heads, too.

    Raises:
        StoreError: the database refused.
    """
    with schema.one_at_a_time(store):
        with store.transaction() as connection:
            _drop(connection)
        schema.upgrade(store)
        return _create_views(store, bundle)


def create_views(store: Store, bundle: Path | None = None) -> Made:
    """Recreate all views in one transaction and grant them to the read-only roles."""
    store.ping()  # before a lock is made beside a file that is not there
    with schema.one_at_a_time(store):
        return _create_views(store, bundle)


def _create_views(store: Store, bundle: Path | None) -> Made:
    with store.transaction() as connection:
        views = wanted(connection, bundle)
        _drop(connection)
        for view in views:
            connection.exec_driver_sql(view.sql)
        lacking = _grant(connection, views)
        made = [{"name": VIEWS_MADE, "value": _digest(views)}]
        store.upsert(connection, tables.installation, made, keep=False)
    return Made(len(views), lacking)


def are_current(store: Store, bundle: Path | None = None) -> bool:
    """Whether the views are those of this release, of the bundles that have scored, and of this."""
    table = tables.installation
    with store.reading() as connection:
        made = connection.scalar(sa.select(table.c.value).where(table.c.name == VIEWS_MADE))
        return bool(made == _digest(wanted(connection, bundle)))


def existing_views(store: Store) -> set[str]:
    """Names of the reporting views in the database."""
    names = sa.inspect(store.engine).get_view_names()
    return {name for name in names if name.startswith(PREFIXES)}


def wanted(connection: Connection, bundle: Path | None = None) -> list[View]:
    """The views of this release and of the bundles that have scored, and of ``bundle``."""
    query = sa.select(tables.bundles.c.bundle, tables.bundles.c.manifest)
    known: dict[str, dict[str, Any]] = {
        row.bundle: row.manifest for row in connection.execute(query)
    }
    if bundle is not None:
        manifest = bundles.load(bundle).manifest
        known.setdefault(manifest.bundle_id, msgspec.to_builtins(manifest))
    return all_views(DIALECTS[connection.dialect.name], known)


def _digest(wanted: list[View]) -> str:
    return hashlib.sha256("\n".join(view.sql for view in wanted).encode()).hexdigest()


def _drop(connection: Connection) -> None:
    for name in sa.inspect(connection).get_view_names():
        if name.startswith(PREFIXES):
            connection.exec_driver_sql(f"DROP VIEW {quoted(name)}")


def _grant(connection: Connection, wanted: list[View]) -> list[str]:
    """Grant what each reading role may read; returns the roles that do not exist."""
    if connection.dialect.name != "postgresql":
        return []
    readable = {
        READER: wanted,
        READER + AGGREGATES: [v for v in wanted if v.name.startswith(OPEN_TO_AGGREGATES)],
    }
    known = set(connection.scalars(sa.text("SELECT rolname FROM pg_roles")))
    schema_name = connection.scalar(sa.text("SELECT current_schema()"))
    for name, views in readable.items():
        if name in known:
            connection.exec_driver_sql(
                f"GRANT USAGE ON SCHEMA {quoted(str(schema_name))} TO {quoted(name)}"
            )
            for view in views:
                connection.exec_driver_sql(f"GRANT SELECT ON {view.name} TO {quoted(name)}")
    return sorted(set(readable) - known)
