"""The database: schema, views, roll-ups, baselines, what expires and what is archived."""

from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from stream_app.cli.options import settings_for

if TYPE_CHECKING:
    from stream_app.analytics.views.schema import Made

MONTHS_KEPT: Final = 3
"""Full months that stay in the database by default: baselines use the last 90 days."""

database = typer.Typer(no_args_is_help=True, help="Manage the database: schema, purging, archive.")


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
    with bootstrap.opened(settings) as store:
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


@database.command()
def purge(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Purge what has expired, also if a worker refuses because it would be much at once."""
    from collections import Counter
    from collections.abc import Mapping

    from stream_app import bootstrap
    from stream_app.bootstrap import worker_process
    from stream_app.store.accounts import audit
    from stream_app.store.accounts.audit import AuditAction
    from stream_app.store.database import clocks
    from stream_app.store.lifecycle import retention

    settings = settings_for()
    with bootstrap.opened(settings) as store:

        def record(what: str, counts: Mapping[str, int]) -> None:
            told = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "nothing"
            audit.record(store, audit.COMMAND_LINE, AuditAction.ERASE, detail=f"{what}: {told}")

        planned = retention.schedule(store, settings.keep_text, settings.keep_scores)
        clocks.check(planned.now, datetime.now(UTC))  # else it is unknown what has expired
        expiring = planned.expiring(store)
        for kind in expiring:
            typer.echo(f"{kind.expiring} of {kind.stored} {kind.what} have expired")
        if not yes:
            typer.confirm("This cannot be undone. Purge them?", abort=True)
        record("expired", {kind.what: kind.expiring for kind in expiring})  # also if it fails
        retention.claim_daily_run(store, planned.now)
        removed = sum(worker_process.purge(settings, store, planned), Counter[str]())
        record("purged", removed)
    typer.echo(
        ", ".join(f"{count} {what}" for what, count in removed.items()) or "nothing to purge"
    )


@database.command("archive")
def move_months(
    before: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m"], help="Move months before this one, for example 2026-03."),
    ] = None,
) -> None:
    """Move finished months to Parquet files in RAPPORT_ARCHIVE; see docs/archive.md."""
    from stream_app import bootstrap, extras

    extras.require_analytics()
    from stream_app.analytics.archive import archive
    from stream_app.store.accounts import audit
    from stream_app.store.accounts.audit import AuditAction
    from stream_app.store.lifecycle import archived, erasure_receipts
    from stream_app.store.lifecycle.archived import ArchiveError

    settings = settings_for()
    folder = settings.archive
    if folder is None:
        raise ArchiveError("set RAPPORT_ARCHIVE to the folder for the archive")
    now = datetime.now(UTC)
    this_month = now.date().replace(day=1)
    first_kept = _first_kept(this_month) if before is None else before.date()
    if first_kept > this_month:
        raise ArchiveError("only finished months can be archived: --before is at most this month")
    with bootstrap.opened(settings) as store:
        kept = now - timedelta(days=settings.keep_scores_days)
        for sessions in archived.expire(store, folder, kept):
            typer.echo(
                f"{sessions} sessions of a month deleted: older than RAPPORT_KEEP_SCORES_DAYS"
            )
        moved = 0
        for month in archive.archive(store, folder, first_kept, now):
            rows = ", ".join(f"{name} {count}" for name, count in month.rows.items())
            name = archived.month_name(month.month)
            typer.echo(f"{name}: {month.sessions} sessions moved ({rows})")
            moved += month.sessions
        erasure_receipts.note_swept(store, now)
        if moved:
            detail = f"{moved} sessions archived"
            audit.record(store, audit.COMMAND_LINE, AuditAction.EXPORT, detail=detail)
        typer.echo(f"{moved} sessions moved; {archived.count(store)} are archived")


def _first_kept(this_month: date) -> date:
    """The first month that stays by default.

    >>> _first_kept(date(2026, 2, 1))
    datetime.date(2025, 11, 1)
    """
    months = this_month.year * 12 + this_month.month - 1 - MONTHS_KEPT
    return date(months // 12, months % 12 + 1, 1)


@database.command("rollups")
def rebuild_rollups() -> None:
    """Recompute the roll-ups from all sessions; workers keep them current."""
    from stream_app import bootstrap
    from stream_app.analytics.rollups import rollups

    with bootstrap.opened(settings_for()) as store:
        typer.echo(f"{rollups.rebuild(store)} sessions rolled up")


@database.command("baselines")
def refresh_baselines(
    days: Annotated[int, typer.Option(min=1, help="Use the sessions of this many days.")] = 90,
    sessions: Annotated[
        int, typer.Option(min=2, help="Minimum number of sessions of a baseline.")
    ] = 20,
) -> None:
    """Recompute the baselines of channels and counsellors from the ended sessions."""
    from stream_app import bootstrap
    from stream_app.store.stream import baselines

    settings = settings_for()
    with bootstrap.opened(settings) as store:
        for bundle in bootstrap.bundle_ids(settings):
            found = baselines.refresh(store, bundle, datetime.now(UTC), days, sessions)
            of = f"{bundle}: " if settings.bundle_routes is not None else ""
            typer.echo(
                f"{of}{found.sessions} ended sessions; baselines of {found.channels} channels and "
                f"{found.counsellors} counsellors. New sessions use them."
            )
