"""Questions of scorecards that a language model is asked."""

from pathlib import Path
from typing import Annotated

import typer

from stream_app.cli.options import settings_for

commands = typer.Typer()


@commands.command()
def ask(
    once: Annotated[
        bool, typer.Option("--once", help="Ask about the sessions that wait now, and end.")
    ] = False,
    trial: Annotated[
        bool,
        typer.Option("--try", help="Ask about reviewed sessions, compare, and store nothing."),
    ] = False,
    scorecards: Annotated[
        Path | None,
        typer.Option(help="With --try: a file of scorecards that is not in force yet."),
    ] = None,
    most: Annotated[
        int, typer.Option(min=1, help="With --try: at most so many sessions for each question.")
    ] = 50,
) -> None:
    """Ask a language model the asked questions about ended sessions, until stopped."""
    from stream_app.commands.service import ask as command

    if scorecards is not None and not trial:
        raise typer.BadParameter("--scorecards needs --try; RAPPORT_SCORECARDS is in force")
    settings = settings_for()
    if trial:
        for tried in command.try_out(settings, scorecards, most):
            typer.echo(tried.question)
            typer.echo(
                f"  asked about {tried.asked} of {tried.reviewed} reviewed sessions (with text and "
                f"consent), {tried.seconds:.1f} s each"
            )
            for reason, count in sorted(tried.dropped.items()):
                typer.echo(f"  dropped, {reason}: {count}")
            typer.echo(f"  {tried.agreement.words}")
    elif once:
        for result, count in command.once(settings).items():
            typer.echo(f"{result}: {count}")
    else:
        command.run(settings)
