"""Score recordings."""

from pathlib import Path
from typing import Annotated

import typer

from stream_app.cli.options import Bundle, progress_console, settings_for

commands = typer.Typer()


@commands.command()
def score(
    source: Annotated[Path, typer.Argument(help="JSON lines file or ConvoKit folder.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Default, and `-`: standard output.")
    ] = None,
    batch: Annotated[
        int, typer.Option(min=1, help="Events per batch; does not affect scores.")
    ] = 256,
    alerts: Annotated[bool, typer.Option(help="Also write alert transitions.")] = False,
    assume_consent: Annotated[
        bool, typer.Option(help="Score turns without `consent`: it was given elsewhere.")
    ] = False,
    bundle: Bundle = None,
) -> None:
    """Score a file as a worker does, without Kafka and a database.

    Exit status 0: at least one event is valid; dead letters are printed. 1: no event is valid, or
    a file cannot be read or written. 2: wrong options or settings. 130: Ctrl-C or SIGTERM.
    """
    from stream_app import bootstrap
    from stream_app.processes.interrupts import signals_as_interrupt
    from stream_app.recordings import event_files, past_of_file
    from stream_app.recordings import scoring as command

    settings = settings_for(bundle)
    if assume_consent:
        settings = settings.model_copy(update={"require_consent": False})
    pipeline = bootstrap.pipeline(settings, bootstrap.offline_scorer(settings))
    revised = past_of_file.revised_sessions([source])
    events = command.with_progress([source], progress_console())
    with signals_as_interrupt(), command.open_output(out, source) as stream:
        summary = command.run(
            pipeline, events, stream, batch, alerts, settings.plausible_times, revised
        )
        for letter in summary.dead_letters:
            typer.echo(
                f"line {letter.offset + 1}: dead letter ({letter.reason}): {letter.detail}",
                err=True,
            )
        if not summary.valid:
            raise event_files.NoEvents([source], len(summary.dead_letters))
    counts = ", ".join(f"{name} {n}" for name, n in sorted(summary.counts.items()))
    typer.echo(f"{summary.sessions} sessions; {counts}", err=True)
    if summary.counts["withheld"]:
        typer.echo(
            f"{summary.counts['withheld']} events were withheld: their session does not have "
            '`"consent": true`. If consent was given elsewhere, use --assume-consent '
            "(worker: RAPPORT_REQUIRE_CONSENT=false).",
            err=True,
        )
