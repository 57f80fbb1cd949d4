"""The command without a subcommand, and how errors are printed."""

import os
from typing import Annotated, NoReturn

import typer

from stream_app import __version__, extras
from stream_app.cli import (
    accounts,
    adapting,
    asking,
    database,
    dead_letters,
    importing,
    inspection,
    intents,
    keys,
    privacy,
    reporting,
    reviews,
    rules,
    running,
    scoring,
)
from stream_app.errors import RapportError

app = typer.Typer(
    name="rapport",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Scores how empathy is expressed in live conversations. "
    "Not a diagnosis, risk assessment or performance rating.",
)
for module in (running, scoring, asking, adapting, privacy, reporting, inspection):
    app.add_typer(module.commands)
app.add_typer(reporting.longitudinal, name="rollups")
app.add_typer(reporting.drift, name="drift")
app.add_typer(importing.imports, name="import")
app.add_typer(database.database, name="db")
app.add_typer(dead_letters.letters, name="dead-letters")
app.add_typer(rules.alert_rules, name="rules")
app.add_typer(intents.turn_intents, name="intents")
app.add_typer(reviews.cards, name="scorecards")
app.add_typer(reviews.sampling, name="reviews")
app.add_typer(rules.usual, name="baselines")
app.add_typer(keys.key_commands, name="keys")
app.add_typer(privacy.consent_commands, name="consent")
app.add_typer(privacy.hold_commands, name="hold")
app.add_typer(privacy.trail, name="audit")
app.add_typer(accounts.accounts, name="people")
app.add_typer(accounts.approved, name="studies")
app.add_typer(running.notifications, name="notify")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rapport {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001  # its callback ends the command
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Parse the options before the command."""
    if context.invoked_subcommand != "doctor":  # it reports these as a problem
        from stream_app import setting_names

        for warning in setting_names.warnings(os.environ):
            typer.echo(f"rapport: {warning}", err=True)
        if setting_names.are_missed(os.environ):
            raise typer.Exit(2)


def main() -> None:
    """Run the command; print a RapportError as one line instead of a traceback."""
    try:
        app()
    except RapportError as problem:
        _end_with(problem)
    except ValueError as problem:
        from pydantic import ValidationError

        if not isinstance(problem, ValidationError):
            raise
        for error in problem.errors():
            name = "_".join(str(part) for part in error["loc"]).upper()
            what = error["msg"].removeprefix("Value error, ")
            typer.echo(f"RAPPORT_{name}: {what}" if name else f"rapport: {what}", err=True)
        raise SystemExit(2) from None
    except ModuleNotFoundError as problem:
        missing = extras.explained(problem)
        if missing is None:
            raise
        _end_with(missing)


def _end_with(problem: RapportError) -> NoReturn:
    typer.echo(f"rapport: {problem}", err=True)
    raise SystemExit(1) from None
