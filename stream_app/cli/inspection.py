"""Settings in force and the state of the installation."""

import typer

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
def doctor() -> None:
    """Check settings and connections, and say how to fix problems."""
    from rich.console import Console
    from rich.markup import escape

    from stream_app import logs
    from stream_app.processes.doctor import run_checks
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
