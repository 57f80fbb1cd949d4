"""Reviews of sessions and their scorecards."""

import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from stream_app.cli.options import settings_for

SEEDS: Final = 2**31
cards = typer.Typer(no_args_is_help=True, help="Check scorecards of reviews; see docs/reviews.md.")
sampling = typer.Typer(no_args_is_help=True, help="Draw sessions for review; see docs/reviews.md.")


@cards.command("check")
def check_scorecards(
    file: Annotated[Path, typer.Argument(help="File of scorecards.")],
) -> None:
    """Check a file of scorecards; print its criteria, or all errors."""
    from stream_app import bootstrap

    for card in bootstrap.scorecards(file).values():
        typer.echo(f"{card.name}: {card.title}")
        for each in card.criteria:
            source = f", from {each.source.measure}" if each.source else ""
            steps = " / ".join(each.scale)
            typer.echo(f"  {each.name} (weight {each.weight:g}{source}): {steps}")


@sampling.callback()
def _group() -> None:
    """Make ``sample`` a command of its own although it is the only one."""


@sampling.command("sample")
def sample_reviews(
    team: Annotated[str, typer.Option(help="Team whose ended sessions are drawn.")],
    at_random: Annotated[
        int, typer.Option("--random", min=0, help="Sessions to draw at random.")
    ] = 0,
    by_risk: Annotated[
        int, typer.Option("--risk", min=0, help="Further sessions, drawn by low-empathy risk.")
    ] = 0,
    double: Annotated[
        float, typer.Option(min=0, max=1, help="Share of them that two people review blind.")
    ] = 0.0,
    due: Annotated[int, typer.Option(min=1, help="Days until the reviews are due.")] = 7,
    days: Annotated[int, typer.Option(min=1, help="From sessions of this many days.")] = 7,
    to: Annotated[
        list[str] | None,
        typer.Option(help="A reviewer; repeatable. Default: the team's supervisors."),
    ] = None,
    scorecard: Annotated[
        str | None, typer.Option(help="Name of a scorecard; default: the first.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Draws the same from the same sessions.")
    ] = None,
) -> None:
    """Draw ended sessions that nobody has reviewed, and assign them to supervisors."""
    from stream_app.commands.results import reviews as command

    chosen = secrets.randbelow(SEEDS) if seed is None else seed
    plan = command.Plan(team, at_random, by_risk, double, due, days, chosen, to or (), scorecard)
    done = command.sample(settings_for(), plan, datetime.now(UTC))
    typer.echo(
        f"drawn of {done.found} sessions with seed {chosen}: {done.at_random} at random, "
        f"{done.by_risk} by risk; {done.double} for double review"
    )
    for name, count in done.by_person.items():
        typer.echo(f"{name:30} {count} review(s)")
