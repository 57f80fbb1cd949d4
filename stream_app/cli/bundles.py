"""Check bundles, adapt one to this installation, promote it and roll it back."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stream_app import extras
from stream_app.cli.options import Bundle, settings_for, with_bundle

if TYPE_CHECKING:
    from stream_app.settings import Settings

commands = typer.Typer(
    no_args_is_help=True, help="Check, adapt, promote and roll back model bundles."
)


@commands.command()
def check(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Name of a shipped bundle, or a folder; default: RAPPORT_BUNDLE."),
    ] = None,
) -> None:
    """Check a model bundle, and print its id and its digest.

    A head bundle (docs/bundles.md) is checked against the encoder of RAPPORT_BUNDLE.
    """
    from stream_app.inference import head_bundle
    from stream_app.inference.bundles.bundle import load
    from stream_app.settings import Settings

    settings = with_bundle(folder)
    if head_bundle.is_head_bundle(settings.bundle):
        base = load(Settings().bundle)
        heads = head_bundle.load(settings.bundle, base)
        typer.echo(f"{heads.manifest.bundle_id}, heads on the encoder of {base.manifest.bundle_id}")
        typer.echo(f"digest: {heads.digest}")
        return
    found = load(settings.bundle)
    typer.echo(found.manifest.bundle_id)
    typer.echo(f"RAPPORT_BUNDLE_DIGEST={found.digest}")


@commands.command()
def routes(
    team: Annotated[str | None, typer.Option(help="Which bundle would score this team?")] = None,
    channel: Annotated[str | None, typer.Option(help="A channel.")] = None,
    domain: Annotated[str | None, typer.Option(help="A domain.")] = None,
    lang: Annotated[str | None, typer.Option(help="A language tag, such as de-AT.")] = None,
) -> None:
    """Load the bundles of RAPPORT_BUNDLE_ROUTES, and print which one scores a session.

    Exit status 1: the file is not valid, or a bundle is refused.
    """
    from stream_app import bootstrap
    from stream_app.core.rules.routing import Addressed
    from stream_app.settings import Settings

    settings = Settings()
    core, refused = bootstrap.routed_pipeline(settings, bootstrap.scorer(settings))
    found = core.bundles.choose(Addressed(team, channel, domain, lang))
    for name, each in {"default": core.bundles.default, **core.bundles.routed}.items():
        mark = "*" if each is found else " "
        languages = ", ".join(each.languages)
        typer.echo(f"{mark} {name}: {each.environment.bundle_id} ({languages})")
    if found is None:
        typer.echo("No bundle covers this language: turns are stored without scores.")
    for refusal in refused:
        typer.echo(f"{refusal.name} is refused: {refusal.problem}", err=True)
    raise typer.Exit(1 if refused else 0)


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
    from stream_app import bootstrap
    from stream_app.adaptation import adapting
    from stream_app.adaptation.outcome_risks import parse_definition

    changes = {"database_url": SecretStr(database)} if database else {}
    settings = settings_for(bundle, **changes)
    if export is not None:
        _export(settings, consent, export)
        return
    assert out is not None  # noqa: S101 (checked above)
    request = adapting.Request(
        wordings=tuple(consent),
        out=out,
        name=name,
        outcomes=tuple(parse_definition(one) for one in outcome or ()),
        sessions=sessions,
        command=_without_database(sys.argv[1:]),
    )
    parent = bootstrap.bundle(settings)
    with bootstrap.opened(settings) as store:
        store.check_schema()
        found = adapting.run(settings, store, parent, request)
    typer.echo(found.comparison.markdown())
    for reason, number in sorted(found.counts.left_out.items()):
        typer.echo(f"{number} judgements were left out: {reason}", err=True)
    if found.bundle is None:
        typer.echo("nothing passes the gate: no bundle was written", err=True)
        raise typer.Exit(1)
    typer.echo(f"\n{found.bundle.manifest.bundle_id} written to {out}")
    typer.echo(f"RAPPORT_BUNDLE_DIGEST={found.bundle.digest}")


def _export(settings: "Settings", consent: list[str], file: Path) -> None:
    from stream_app import bootstrap
    from stream_app.adaptation import encoding

    scorer = bootstrap.offline_scorer(settings)
    with bootstrap.opened(settings) as store:
        store.check_schema()
        found = encoding.run(store, scorer, consent, file)
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
    from stream_app import bootstrap
    from stream_app.adaptation import promotion
    from stream_app.inference.bundles.bundle import find

    settings = settings_for()
    with bootstrap.opened(settings, privacy=True) as store:
        store.check_schema()
        done = promotion.promote(store, settings.bundle, find(bundle), reason)
    typer.echo(f"{done.bundle} is in force from the next restart of workers and consoles on")


@commands.command()
def rollback(reason: Reason) -> None:
    """Bring the bundle before the one in force into force again."""
    from stream_app import bootstrap
    from stream_app.adaptation import promotion

    settings = settings_for()
    with bootstrap.opened(settings, privacy=True) as store:
        store.check_schema()
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
