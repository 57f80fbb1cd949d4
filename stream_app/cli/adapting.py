"""Adapt a bundle to this installation, promote it and roll it back."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stream_app import extras
from stream_app.cli.options import Bundle, settings_for

if TYPE_CHECKING:
    from stream_app.settings import Settings

commands = typer.Typer()


@commands.command()
def adapt(
    consent: Annotated[
        list[str],
        typer.Option(
            help="Version of a consent's wording that covers adaptation; repeatable. `any`: every "
            "consent here does."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the new bundle.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            help="File for the judged turns as vectors instead, from which `python -m "
            "research.adaptation.adapter` trains an adapter; reads text."
        ),
    ] = None,
    database: Annotated[
        str | None, typer.Option(help="URL of the database; default: RAPPORT_DATABASE_URL.")
    ] = None,
    bundle: Bundle = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the new bundle; default: the parent's.")
    ] = None,
    outcome: Annotated[
        list[str] | None,
        typer.Option(
            help="Which recorded outcomes are a risk's event: chat_failed=rating<3; repeatable."
        ),
    ] = None,
    sessions: Annotated[
        int, typer.Option(min=0, help="Newest ended sessions for references and outcomes.")
    ] = 2000,
) -> None:
    """Fit a bundle to the ratings, disputes and outcomes in the database; write a new bundle.

    Prints the comparison with the present bundle, cross-validated by counsellor. Exit status 1:
    nothing passes the gate, and no bundle is written.
    """
    from pydantic import SecretStr

    if (out is None) == (export is None):
        raise typer.BadParameter("name a new bundle with --out, or a file with --export")
    extras.require("analytics", ["scipy"])
    from contextlib import closing

    from stream_app import bootstrap
    from stream_app.adaptation.outcome_risks import parse_definition
    from stream_app.commands.rules import adapt as command

    changes = {"database_url": SecretStr(database)} if database else {}
    settings = settings_for(bundle, **changes)
    if export is not None:
        _export(settings, consent, export)
        return
    assert out is not None  # noqa: S101 (checked above)
    request = command.Request(
        wordings=tuple(consent),
        out=out,
        name=name,
        outcomes=tuple(parse_definition(one) for one in outcome or ()),
        sessions=sessions,
        command=_without_database(sys.argv[1:]),
    )
    parent = bootstrap.bundle(settings)
    with closing(bootstrap.store(settings)) as store:
        store.check_schema()
        found = command.run(settings, store, parent, request)
    typer.echo(found.comparison.markdown())
    for reason, number in sorted(found.counts.left_out.items()):
        typer.echo(f"{number} judgements were left out: {reason}", err=True)
    if found.bundle is None:
        typer.echo("nothing passes the gate: no bundle was written", err=True)
        raise typer.Exit(1)
    typer.echo(f"\n{found.bundle.manifest.bundle_id} written to {out}")
    typer.echo(f"RAPPORT_BUNDLE_DIGEST={found.bundle.digest}")


def _export(settings: "Settings", consent: list[str], file: Path) -> None:
    from contextlib import closing

    from stream_app import bootstrap
    from stream_app.commands.rules import adapt_vectors as command

    scorer = bootstrap.offline_scorer(settings)
    with closing(bootstrap.store(settings)) as store:
        store.check_schema()
        found = command.run(store, scorer, consent, file)
    counts = found.counts
    for reason, number in sorted(counts.left_out.items()):
        typer.echo(f"{number} judgements were left out: {reason}", err=True)
    typer.echo(
        f"{counts.ratings} rated turns and {counts.disputes} disputes by {counts.counsellors} "
        f"counsellors written to {file}; probabilities differ from the stored ones by "
        f"{found.gap:.4f} on average"
    )


Reason = Annotated[str, typer.Option(help="Why, for the audit trail.")]


@commands.command()
def promote(
    bundle: Annotated[Path, typer.Argument(help="Name of a shipped bundle, or a folder.")],
    reason: Reason,
) -> None:
    """Bring a bundle into force, in the file that RAPPORT_BUNDLE names.

    Workers and consoles use it after their restart.
    """
    from contextlib import closing

    from stream_app import bootstrap
    from stream_app.adaptation import promotion
    from stream_app.inference.bundles.bundle import find

    settings = settings_for()
    with closing(bootstrap.store(settings)) as store:
        store.check_schema()
        store.load_privacy(settings.redact)
        done = promotion.promote(store, settings.bundle, find(bundle), reason)
    typer.echo(f"{done.bundle} is in force from the next restart of workers and consoles on")


@commands.command()
def rollback(reason: Reason) -> None:
    """Bring the bundle before the one in force into force again."""
    from contextlib import closing

    from stream_app import bootstrap
    from stream_app.adaptation import promotion

    settings = settings_for()
    with closing(bootstrap.store(settings)) as store:
        store.check_schema()
        store.load_privacy(settings.redact)
        done = promotion.rollback(store, settings.bundle, reason)
    typer.echo(f"{done.bundle} is in force from the next restart of workers and consoles on")


def _without_database(arguments: list[str]) -> tuple[str, ...]:
    """The command line without the database's URL, which may have a password."""
    shown = ["rapport"]
    hidden = False
    for argument in arguments:
        if hidden:
            hidden = False
        elif argument == "--database":
            hidden = True
        elif not argument.startswith("--database="):
            shown.append(shlex.quote(argument))
    return tuple(shown)
