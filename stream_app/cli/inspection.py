"""Settings in force, the bundle and the state of the installation."""

import os
from pathlib import Path
from typing import Annotated

import typer
from pydantic import SecretStr
from rich.console import Console
from rich.markup import escape

from stream_app import logs, secret_files
from stream_app.cli.options import with_bundle
from stream_app.settings import Settings

commands = typer.Typer()


@commands.command()
def config() -> None:
    """Print the settings in force; secrets are masked."""
    settings = Settings()
    for name, info in Settings.model_fields.items():
        line = f"RAPPORT_{name.upper()}={_shown(name, getattr(settings, name))}"
        typer.echo(f"{line:60} # {info.description}" if info.description else line)
    for name, variable in secret_files.variables(Settings).items():
        line = f"{variable}={os.environ.get(variable, '')}"
        typer.echo(f"{line:60} # File that holds RAPPORT_{name.upper()}")


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


def _shown(name: str, value: object) -> str:
    match value:
        case SecretStr() if name in ("database_url", "database_read_url"):
            from stream_app.store.connection import masked_url

            return masked_url(value.get_secret_value())
        case SecretStr():
            return "********"
        case None:
            return ""
        case _:
            return str(getattr(value, "value", value))
