"""The database's schema and views."""

from contextlib import closing
from typing import TYPE_CHECKING

import typer

from stream_app.cli.options import settings_for

if TYPE_CHECKING:
    from stream_app.analytics.views.schema import Made

database = typer.Typer(no_args_is_help=True, help="Manage the database's schema.")


@database.command()
def upgrade() -> None:
    """Create the tables, or upgrade them to this release's schema, and the reporting views."""
    from stream_app import bootstrap
    from stream_app.analytics.views import schema as reporting
    from stream_app.store.stream import schema

    settings = settings_for()
    with closing(bootstrap.new_store(settings)) as store:
        before, newest = schema.revisions(store)
        made = reporting.upgrade(store, settings.bundle)
    typer.echo(f"schema {before or 'none'} → {newest}")
    _tell_of_views(made)


@database.command("views")
def make_views() -> None:
    """Recreate the reporting views, after the first use of a bundle with other heads."""
    from stream_app import bootstrap
    from stream_app.analytics.views import schema as reporting

    settings = settings_for()
    with closing(bootstrap.store(settings)) as store:
        made = reporting.create_views(store, settings.bundle)
    _tell_of_views(made)


def _tell_of_views(made: "Made") -> None:
    typer.echo(f"{made.views} reporting views")
    for role in made.lacking_roles:
        typer.echo(
            f'no role {role}: this account may not create roles. Run CREATE ROLE "{role}" NOLOGIN '
            "as an administrator, then `rapport db views`",
            err=True,
        )
