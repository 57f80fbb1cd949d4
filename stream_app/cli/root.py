"""The command without a subcommand: its groups, its help, and how errors are printed."""

import os
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer
from typer.core import TyperGroup

from stream_app import __version__, extras
from stream_app.cli import (
    accounts,
    bundles,
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

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

GROUPS: Final = {
    "Run the service": ("up", "demo", "worker", "web", "notify", "watch", "doctor", "config"),
    "Bring conversations in": ("import", "score", "replay", "dead-letters"),
    "Decide how they are judged": ("bundle", "rules", "intents", "reviews"),
    "Evaluate": ("analyse", "report", "drift", "export"),
    "Administer": ("db", "people", "keys", "consent", "hold", "erase", "audit"),
}
"""The commands by the headings of the help, which has to fit a screen of 40 lines."""
MOVED: Final = {
    "adapt": "bundle adapt",
    "archive": "db archive",
    "ask": "reviews ask",
    "baselines refresh": "db baselines",
    "bench": "demo bench",
    "broker": "demo broker",
    "promote": "bundle promote",
    "purge": "db purge",
    "rollback": "bundle rollback",
    "rollups rebuild": "db rollups",
    "rollups update": "db rollups",
    "routes": "bundle routes",
    "scorecards check": "reviews check",
    "studies": "people studies",
}
"""Former names of commands, which still run in release 0.2; see docs/upgrading.md."""


class Root(TyperGroup):
    """Prints its commands by group and in plain text: panels would not fit a screen."""

    def format_help(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Format without rich, which takes as long to import as all the rest."""
        super(TyperGroup, self).format_help(ctx, formatter)

    def collect_usage_pieces(self, ctx: "Context") -> list[str]:  # noqa: ARG002
        """Name the options here: a list of them takes lines from the commands."""
        return ["[--version] [--help]", self.subcommand_metavar]

    def format_options(self, ctx: "Context", formatter: "HelpFormatter") -> None:  # noqa: ARG002
        """List the commands by group."""
        width = max(map(len, self.commands))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (name.ljust(width), self.commands[name].get_short_help_str(formatter.width))
                        for name in names
                    ]
                )

    def resolve_command(
        self, ctx: "Context", args: list[str]
    ) -> "tuple[str | None, Command | None, list[str]]":
        """Run a command that moved, and say what it is now."""
        for old, new in MOVED.items():
            words = old.split()
            if args[: len(words)] == words:
                typer.echo(f"rapport: `rapport {old}` is now `rapport {new}`", err=True)
                args = [*new.split(), *args[len(words) :]]
                break
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="rapport",
    cls=Root,
    pretty_exceptions_enable=False,
    help="Scores how empathy is expressed; no diagnosis, risk or performance rating.",
)
for module in (running, scoring, privacy, reporting, inspection):
    app.add_typer(module.commands)
app.add_typer(running.notifications, name="notify")
app.add_typer(running.demo, name="demo")
app.add_typer(database.database, name="db")
app.add_typer(importing.imports, name="import")
app.add_typer(dead_letters.letters, name="dead-letters")
app.add_typer(accounts.accounts, name="people")
app.add_typer(keys.key_commands, name="keys")
app.add_typer(privacy.consent_commands, name="consent")
app.add_typer(privacy.hold_commands, name="hold")
app.add_typer(privacy.trail, name="audit")
app.add_typer(bundles.commands, name="bundle")
app.add_typer(rules.alert_rules, name="rules")
app.add_typer(intents.turn_intents, name="intents")
app.add_typer(reviews.commands, name="reviews")
app.add_typer(reporting.drift, name="drift")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rapport {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001  # its callback ends the command
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Parse the options before the command; without one, print the help."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)
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
