"""Settings in force, the bundle and the state of the installation."""

from pathlib import Path
from typing import Annotated

import typer

from stream_app.cli.options import with_bundle

commands = typer.Typer()


@commands.command()
def config() -> None:
    """Print the settings in force; secrets are masked."""
    from stream_app.settings import Settings
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
    """Check a model bundle, and print its id and its digest.

    A head bundle (docs/bundles.md) is checked against the encoder of RAPPORT_BUNDLE.
    """
    from stream_app.inference import head_bundle
    from stream_app.inference.bundles.bundle import load
    from stream_app.settings import Settings

    settings = with_bundle(folder)
    if head_bundle.is_head_bundle(settings.bundle):
        base = load(Settings().bundle)
        heads = head_bundle.load(settings.bundle, base)
        typer.echo(f"{heads.manifest.bundle_id}, heads on the encoder of {base.manifest.bundle_id}")
        typer.echo(f"digest: {heads.digest}")
        return
    found = load(settings.bundle)
    typer.echo(found.manifest.bundle_id)
    typer.echo(f"RAPPORT_BUNDLE_DIGEST={found.digest}")


@commands.command()
def routes(
    team: Annotated[str | None, typer.Option(help="Which bundle would score this team?")] = None,
    channel: Annotated[str | None, typer.Option(help="A channel.")] = None,
    domain: Annotated[str | None, typer.Option(help="A domain.")] = None,
    lang: Annotated[str | None, typer.Option(help="A language tag, such as de-AT.")] = None,
) -> None:
    """Load the bundles of RAPPORT_BUNDLE_ROUTES, and print which one scores a session.

    Exit status 1: the file is not valid, or a bundle is refused.
    """
    from stream_app import bootstrap
    from stream_app.core.rules.routing import Addressed
    from stream_app.settings import Settings

    settings = Settings()
    core, refused = bootstrap.routed_pipeline(settings, bootstrap.scorer(settings))
    found = core.bundles.choose(Addressed(team, channel, domain, lang))
    for name, each in {"default": core.bundles.default, **core.bundles.routed}.items():
        mark = "*" if each is found else " "
        languages = ", ".join(each.languages)
        typer.echo(f"{mark} {name}: {each.environment.bundle_id} ({languages})")
    if found is None:
        typer.echo("No bundle covers this language: turns are stored without scores.")
    for refusal in refused:
        typer.echo(f"{refusal.name} is refused: {refusal.problem}", err=True)
    raise typer.Exit(1 if refused else 0)


@commands.command()
def doctor() -> None:
    """Check configuration and connections, and suggest how to fix problems."""
    from rich.console import Console
    from rich.markup import escape

    from stream_app import logs
    from stream_app.commands.service.doctor import run_checks
    from stream_app.settings import Settings

    settings = Settings()
    logs.configure("ERROR", settings.log_format)
    console = Console(soft_wrap=True)
    healthy = True
    for finding in run_checks(settings):
        mark = "[green]ok[/]" if finding.healthy else "[bold red]problem[/]"
        console.print(f"{mark:24} {finding.name:9} {escape(finding.detail)}", highlight=False)
        healthy &= finding.healthy
    raise typer.Exit(0 if healthy else 1)
