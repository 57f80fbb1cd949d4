"""List and replay dead letters."""

from typing import Annotated

import typer

from stream_app.cli.options import settings_for

letters = typer.Typer(no_args_is_help=True, help="List and replay dead letters.")


Reasons = Annotated[
    list[str] | None,
    typer.Option("--reason", help="Only dead letters with this reason; repeatable."),
]


@letters.command("count")
def count_letters() -> None:
    """Print the number of dead letters by reason."""
    import asyncio
    from collections import Counter

    from stream_app.worker.kafka import dead_letters

    found = asyncio.run(dead_letters.read(settings_for()))
    for reason, count in Counter(item.letter.reason for item in found).most_common():
        typer.echo(f"{count:8}  {reason}")
    typer.echo(f"{len(found):8}  in total")


@letters.command("list")
def list_letters(reason: Reasons = None) -> None:
    """Print a line per dead letter: id, reason, size, problem; never text."""
    import asyncio

    from stream_app.worker.kafka import dead_letters

    found = asyncio.run(dead_letters.read(settings_for()))
    for item in dead_letters.select(found, reason or ()):
        letter = item.letter
        cut = "" if item.complete else "  (truncated)"
        typer.echo(
            f"{letter.dead_letter_id}  {letter.reason}  {letter.size} bytes  {letter.detail}{cut}"
        )


@letters.command("replay")
def replay_letters(
    ids: Annotated[list[str] | None, typer.Argument(help="Ids, as `list` shows them.")] = None,
    reason: Reasons = None,
    everything: Annotated[bool, typer.Option("--all", help="Replay all.")] = False,
) -> None:
    """Send dead letters to the turns topic again, after the problem has been fixed."""
    import asyncio

    from stream_app.worker.kafka import dead_letters

    if not (ids or reason or everything):
        raise typer.BadParameter("name dead letters, or use --reason or --all")
    settings = settings_for()
    found = dead_letters.select(asyncio.run(dead_letters.read(settings)), reason or (), ids or ())
    sent = asyncio.run(dead_letters.resend(settings, found))
    cut = sum(not item.complete for item in found)
    typer.echo(f"{sent} sent to {settings.turns_topic}; {cut} not sent because they are truncated")
