"""Options that several commands take, and the settings they change."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from stream_app.settings import Settings
    from stream_app.store.accounts.audit import AuditAction

Speed = Annotated[float, typer.Option(min=0.0, help="Factor on all pauses; 0 = no pauses.")]
Bundle = Annotated[
    Path | None,
    typer.Option(help="Name of a shipped bundle, or a folder; default: RAPPORT_BUNDLE."),
]
DAY = ["%Y-%m-%d"]


def with_bundle(bundle: Path | None) -> "Settings":
    """Settings of the environment, with the bundle of the command line if it names one."""
    from stream_app.settings import Settings

    settings = Settings()
    if bundle is None:
        return settings
    from stream_app.inference.bundles.bundle import find

    return settings.model_copy(update={"bundle": find(bundle)})


def settings_for(bundle: Path | None = None, **changes: object) -> "Settings":
    """Settings of a command, after its log has been configured by them."""
    from stream_app import logs

    settings = with_bundle(bundle).model_copy(update=changes)
    logs.configure(settings.log_level, settings.log_format)
    return settings


def in_utc(day: datetime | None) -> datetime | None:
    """The day's begin in UTC."""
    return None if day is None else day.replace(tzinfo=UTC)


def progress_console() -> "Console | None":
    """Where progress is shown: the terminal, if there is one."""
    from rich.console import Console

    return Console(stderr=True) if sys.stderr.isatty() else None


def record_read(settings: "Settings", action: "AuditAction", command: str) -> None:
    """Record what ``command`` reads, before it shows it; also if it reads a replica or topics.

    Raises:
        StoreError: it could not be recorded; do not show the data.
    """
    from stream_app import bootstrap
    from stream_app.store.accounts import audit

    with bootstrap.opened(settings) as store:
        audit.record(store, audit.COMMAND_LINE, action, None, f"rapport {command}")
