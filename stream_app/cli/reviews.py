"""Reviews of sessions, their scorecards, and the questions that a language model is asked."""

import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from stream_app.cli.options import settings_for

SEEDS: Final = 2**31
commands = typer.Typer(
    no_args_is_help=True, help="Draw sessions for review, check scorecards. See docs/reviews.md."
)


@commands.command("check")
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


@commands.command("sample")
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
    from stream_app import bootstrap
    from stream_app.work import review_samples

    settings = settings_for()
    chosen = secrets.randbelow(SEEDS) if seed is None else seed
    plan = review_samples.Plan(
        team, at_random, by_risk, double, due, days, chosen, to or (), scorecard
    )
    cards = bootstrap.scorecards(settings.scorecards)
    with bootstrap.opened(settings) as store:
        done = review_samples.sample(store, cards, plan, datetime.now(UTC))
    typer.echo(
        f"drawn of {done.found} sessions with seed {chosen}: {done.at_random} at random, "
        f"{done.by_risk} by risk; {done.double} for double review"
    )
    for name, count in done.by_person.items():
        typer.echo(f"{name:30} {count} review(s)")


@commands.command()
def ask(
    once: Annotated[
        bool, typer.Option("--once", help="Ask about the sessions that wait now, and end.")
    ] = False,
    trial: Annotated[
        bool,
        typer.Option("--try", help="Ask about reviewed sessions, compare, and store nothing."),
    ] = False,
    scorecards: Annotated[
        Path | None,
        typer.Option(help="With --try: a file of scorecards that is not in force yet."),
    ] = None,
    most: Annotated[
        int, typer.Option(min=1, help="With --try: at most so many sessions for each question.")
    ] = 50,
) -> None:
    """Ask a language model the asked questions about ended sessions, until stopped."""
    from stream_app.processes import asking as command

    if scorecards is not None and not trial:
        raise typer.BadParameter("--scorecards needs --try; RAPPORT_SCORECARDS is in force")
    settings = settings_for()
    if trial:
        for tried in command.try_out(settings, scorecards, most):
            typer.echo(tried.question)
            typer.echo(
                f"  asked about {tried.asked} of {tried.reviewed} reviewed sessions (with text and "
                f"consent), {tried.seconds:.1f} s each"
            )
            for reason, count in sorted(tried.dropped.items()):
                typer.echo(f"  dropped, {reason}: {count}")
            typer.echo(f"  {tried.agreement.words}")
    elif once:
        for result, count in command.once(settings).items():
            typer.echo(f"{result}: {count}")
    else:
        command.run(settings)
