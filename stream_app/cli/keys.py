"""Keys of stored text and pseudonyms."""

from pathlib import Path
from typing import Annotated

import typer

from stream_app.cli.options import settings_for

key_commands = typer.Typer(
    no_args_is_help=True,
    help="Manage the keys of stored text and pseudonyms. See docs/security.md.",
)


@key_commands.command("new")
def new_key(
    file: Annotated[
        Path | None, typer.Argument(help="Put it first into this file; without one, print it.")
    ] = None,
) -> None:
    """Make a key. In a file of master keys the first one encrypts, the others only decrypt."""
    from stream_app.work import keys

    made = keys.new(file)
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
    from stream_app import bootstrap
    from stream_app.work import keys

    done = 0
    with bootstrap.opened(settings_for(), privacy=True) as store:
        for done in keys.rotate(store):
            typer.echo(f"{done} keys", err=True)
        typer.echo(f"{done} keys of sessions are encrypted with the first master key now")
        if destroy:
            gone = keys.destroy_old(store)
            typer.echo(f"destroyed: {', '.join(gone) or 'no key, there was one only'}")


@key_commands.command("encrypt")
def encrypt_stored() -> None:
    """Encrypt what a release before 0.2 stored in plain; workers may go on."""
    from collections import Counter

    from stream_app import bootstrap
    from stream_app.work import keys

    done: Counter[str] = Counter()
    with bootstrap.opened(settings_for(), privacy=True) as store:
        for piece in keys.encrypt(store):
            done += piece
    for name, count in done.most_common():
        typer.echo(f"{count:8}  {name}")
    typer.echo(f"{done.total():8}  values encrypted")


@key_commands.command("move")
def move_key() -> None:
    """Move the pseudonym key out of the database to RAPPORT_PSEUDONYM_KEY_FILE."""
    from stream_app import bootstrap
    from stream_app.work import keys

    with bootstrap.opened(settings_for()) as store:
        file = keys.move(store)
    typer.echo(f"the pseudonym key is in {file} now: back it up")


@key_commands.command("rotate-pseudonyms")
def rotate_pseudonyms() -> None:
    """Give every speaker a new pseudonym. Stop workers and consoles before."""
    from stream_app import bootstrap
    from stream_app.work import keys

    settings = settings_for()
    with bootstrap.opened(settings) as store:
        count = keys.rotate_pseudonyms(store, settings.archive)
    typer.echo(f"{count} pseudonyms replaced; start workers and consoles again")
