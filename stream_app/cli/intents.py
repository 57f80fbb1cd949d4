"""Intents: check and test a file, suggest new ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stream_app.cli.options import Bundle, progress_console, settings_for

if TYPE_CHECKING:
    from stream_app.inference.intents import IntentComparer
    from stream_app.inference.scorer import OnnxScorer

turn_intents = typer.Typer(
    no_args_is_help=True, help="Check and test intents. See docs/intents.md."
)
IntentsFile = Annotated[
    Path,
    typer.Argument(help="File of intents, or a shipped set: service, crisis, mi_non_adherent."),
]


@turn_intents.command("check")
def check_intents(file: IntentsFile, bundle: Bundle = None) -> None:
    """Check a file of intents; print its intents, or all errors with their lines."""
    from rich.console import Console

    from stream_app.recordings import intent_tests as command

    command.show(_compared(file, bundle)[0], Console())


@turn_intents.command("test")
def try_intents(
    file: IntentsFile,
    utterances: Annotated[
        Path | None,
        typer.Argument(
            help="JSON lines with `text`, `role` and `intents` (a list of names). Default: the "
            "file's own sentences, each as if the file did not contain it."
        ),
    ] = None,
    hits: Annotated[bool, typer.Option(help="Print each hit with its nearest example.")] = True,
    bundle: Bundle = None,
) -> None:
    """Print precision and recall of each intent, and each hit with its nearest example."""
    from rich.console import Console

    from stream_app.recordings import intent_tests as command

    comparer, scorer = _compared(file, bundle)
    if utterances is None:
        tested = command.test_examples(comparer)
    else:
        labelled = command.read_utterances(utterances, comparer.intents.names)
        tested = command.test_utterances(comparer, scorer, labelled)
    command.report(tested, Console(), with_hits=hits)


@turn_intents.command("suggest")
def suggest_intents(
    file: IntentsFile,
    sources: Annotated[list[Path], typer.Argument(help="JSON lines files or ConvoKit folders.")],
    least: Annotated[int, typer.Option(min=3, help="Turns that a group must have.")] = 5,
    closeness: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Mean cosine between groups that are joined.")
    ] = 0.5,
    bundle: Bundle = None,
) -> None:
    """Cluster the turns that no intent catches; print groups as items of a file of intents.

    Prints text of the recordings: only for people who may read them. Needs the extra analytics.
    """
    from rich.console import Console

    from stream_app import extras
    from stream_app.recordings import intent_suggestions as command
    from stream_app.recordings.scoring import with_progress

    extras.require_analytics()
    comparer, scorer = _compared(file, bundle)
    turns, read = command.uncaught(with_progress(sources, progress_console()), comparer, scorer)
    found = [
        each
        for role, of_role in turns.items()
        for each in command.suggest(role, of_role, least, closeness)
    ]
    command.report(found, Console())
    left = sum(map(len, turns.values()))
    typer.echo(
        f"{read} turns read; of those that no intent catches, {left} different ones were "
        f"clustered; {len(found)} suggestions",
        err=True,
    )


def _compared(file: Path, bundle: Path | None) -> "tuple[IntentComparer, OnnxScorer]":
    from stream_app import bootstrap
    from stream_app.inference import intent_files, intents

    found = intent_files.load(file)
    scorer = bootstrap.scorer(settings_for(bundle))
    return intents.compare(found, scorer), scorer
