"""Settings in force, the bundle and the state of the installation."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from stream_app import logs
from stream_app.cli.options import with_bundle
from stream_app.settings import Settings

commands = typer.Typer()


@commands.command()
def config() -> None:
    """Print the settings in force; secrets are masked."""
    from stream_app.shown_settings import shown_settings

    for setting in shown_settings(Settings()):
        line = f"{setting.variable}={setting.value}"
        typer.echo(f"{line:60} # {setting.description}" if setting.description else line)


@commands.command()
def bundle(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Name of a shipped bundle, or a folder; default: RAPPORT_BUNDLE."),
    ] = None,
) -> None:
    """Check a model bundle, and print its id and the digest for RAPPORT_BUNDLE_DIGEST."""
    from stream_app.inference.bundle import load

    found = load(with_bundle(folder).bundle)
    typer.echo(found.manifest.bundle_id)
    typer.echo(f"RAPPORT_BUNDLE_DIGEST={found.digest}")


@commands.command()
def doctor() -> None:
    """Check configuration and connections, and suggest how to fix problems."""
    from stream_app.commands.doctor import run_checks

    settings = Settings()
    logs.configure("ERROR", settings.log_format)
    console = Console(soft_wrap=True)
    healthy = True
    for finding in run_checks(settings):
        mark = "[green]ok[/]" if finding.healthy else "[bold red]problem[/]"
        console.print(f"{mark:24} {finding.name:9} {escape(finding.detail)}", highlight=False)
        healthy &= finding.healthy
    raise typer.Exit(0 if healthy else 1)
