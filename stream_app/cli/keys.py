"""Keys of stored text and pseudonyms."""

from pathlib import Path
from typing import Annotated

import typer

from stream_app.cli.options import settings_for

key_commands = typer.Typer(
    no_args_is_help=True,
    help="Manage the keys of stored text and pseudonyms; see docs/security.md.",
)


@key_commands.command("new")
def new_key(
    file: Annotated[
        Path | None, typer.Argument(help="Put it first into this file; without one, print it.")
    ] = None,
) -> None:
    """Make a key. In a file of master keys the first one encrypts, the others only decrypt."""
    from stream_app.commands.records import keys as command

    made = command.new(file)
    typer.echo(made if file is None else f"key {made} is the first in {file}")


@key_commands.command("rotate")
def rotate_keys(
    destroy: Annotated[
        bool,
        typer.Option(
            "--destroy-old", help="Then remove the old keys: older backups become unreadable."
        ),
    ] = False,
) -> None:
    """Encrypt the keys of all sessions with the first master key; may be interrupted."""
    from stream_app.commands.records import keys as command

    settings = settings_for()
    done = 0
    for done in command.rotate(settings):
        typer.echo(f"{done} keys", err=True)
    typer.echo(f"{done} keys of sessions are encrypted with the first master key now")
    if destroy:
        gone = command.destroy_old(settings)
        typer.echo(f"destroyed: {', '.join(gone) or 'no key, there was one only'}")


@key_commands.command("encrypt")
def encrypt_stored() -> None:
    """Encrypt what a release before 0.2 stored in plain; workers may go on."""
    from collections import Counter

    from stream_app.commands.records import keys as command

    done: Counter[str] = Counter()
    for piece in command.encrypt(settings_for()):
        done += piece
    for name, count in done.most_common():
        typer.echo(f"{count:8}  {name}")
    typer.echo(f"{done.total():8}  values encrypted")


@key_commands.command("move")
def move_key() -> None:
    """Move the pseudonym key out of the database to RAPPORT_PSEUDONYM_KEY_FILE."""
    from stream_app.commands.records import keys as command

    typer.echo(f"the pseudonym key is in {command.move(settings_for())} now: back it up")


@key_commands.command("rotate-pseudonyms")
def rotate_pseudonyms() -> None:
    """Give every speaker a new pseudonym. Stop workers and consoles before."""
    from stream_app.commands.records import keys as command

    count = command.rotate_pseudonyms(settings_for())
    typer.echo(f"{count} pseudonyms replaced; start workers and consoles again")
