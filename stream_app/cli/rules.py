"""Alert rules."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stream_app.cli.options import Bundle, progress_console, settings_for

if TYPE_CHECKING:
    from stream_app.core.measures.heads import Head
    from stream_app.core.measures.intents import IntentSet


alert_rules = typer.Typer(
    no_args_is_help=True, help="Check and test alert rules. See docs/rules.md."
)


@alert_rules.command("check")
def check_rules(
    file: Annotated[Path, typer.Argument(help="File of rules.")],
    bundle: Bundle = None,
) -> None:
    """Check a file of rules; print its rules, or all errors with their lines."""
    from rich.console import Console

    from stream_app.cli import rule_tables
    from stream_app.store.alerts.rule_sources import RuleFile, load

    rule_tables.show(load(RuleFile(file), _heads(bundle), _intents()), Console())


@alert_rules.command("variables")
def list_variables(bundle: Bundle = None) -> None:
    """Print the rule variables of a bundle, and of RAPPORT_INTENTS, as a Markdown table."""
    from stream_app.cli import rule_tables
    from stream_app.core.rules.intent_variables import catalogue

    typer.echo(rule_tables.variables(catalogue(_heads(bundle), _intents())))


def _heads(bundle: Path | None) -> Sequence["Head"]:
    """The heads in the bundle's manifest, without loading the model."""
    from stream_app import bootstrap

    return bootstrap.bundle(settings_for(bundle)).manifest.heads


def _intents() -> "IntentSet":
    from stream_app.inference import intent_files

    return intent_files.load(settings_for().intents)


@alert_rules.command("test")
def try_rules(
    file: Annotated[Path, typer.Argument(help="File of rules.")],
    sources: Annotated[list[Path], typer.Argument(help="JSON lines files or ConvoKit folders.")],
    low: Annotated[float, typer.Option(min=1, max=5, help="A rating up to this is low.")] = 2.0,
    good: Annotated[float, typer.Option(min=1, max=5, help="A rating from this on is good.")] = 4.0,
    live: Annotated[
        bool, typer.Option(help="Also fire time rules of sessions without an end.")
    ] = False,
    assume_consent: Annotated[
        bool, typer.Option(help="Score turns without `consent`: it was given elsewhere.")
    ] = False,
) -> None:
    """Backtest rules on recorded sessions: alerts, detections and false alarms.

    Exit status 1: no event is valid, or a file cannot be read.
    """
    from rich.console import Console

    from stream_app import bootstrap
    from stream_app.cli import rule_tables
    from stream_app.recordings import event_files, past_of_file, rule_backtest
    from stream_app.recordings.scoring import with_progress

    changes: dict[str, object] = {"rules": file}
    if assume_consent:
        changes["require_consent"] = False
    settings = settings_for(None, **changes)
    pipeline = bootstrap.pipeline(settings, bootstrap.offline_scorer(settings))
    revised = past_of_file.revised_sessions(sources)
    shown = with_progress(sources, progress_console())
    within = settings.idle_after if live else None
    backtest = rule_backtest.run(pipeline, shown, within, settings.plausible_times, revised)
    if not backtest.valid:
        raise event_files.NoEvents(sources, backtest.dead_lettered)
    alerting = pipeline.environment.alerting
    rule_tables.report(backtest, alerting.rules, Console(), low, good)
    for rule in alerting.rules.rules:
        failed = sum(n for source, n in alerting.failures.items() if rule.uses(source))
        if failed:
            typer.echo(f"{rule.name} failed to evaluate {failed} times", err=True)
    if backtest.withheld or backtest.dead_lettered:
        typer.echo(
            f"{backtest.withheld} events were withheld without consent (--assume-consent), "
            f"{backtest.dead_lettered} dead-lettered (`rapport score` prints why)",
            err=True,
        )
