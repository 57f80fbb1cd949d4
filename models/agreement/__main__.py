"""`python -m models.agreement`: agreement of coders, with intervals from resampled sessions.

`file` reads files of ratings (`models.agreement.labelled_file`), such as those of
`research.second_coder`; `console` reads the ratings that a Rapport database holds; `measure`
writes the figures of docs/methods/second-coder.md from the public corpora.
"""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Annotated, Final

import typer

from models.agreement import console, corpora
from models.agreement.labelled_file import read, write
from models.agreement.ratings import Rating, Scale
from models.agreement.report import compared_by_variable, print_agreement
from models.agreement.tables import agreement_table
from models.data.corpora import REPOSITORY, MissingCorpusError, resolve_data_dir
from models.data.split import DESCRIPTION
from models.evaluate.resampling import RESAMPLES
from models.pages import document
from models.pages.tables import with_tables
from stream_app.errors import RapportError
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.bundle import DEFAULT_BUNDLE
from stream_app.inference.scorer import OnnxScorer
from stream_app.settings import Settings

app = typer.Typer(add_completion=False, no_args_is_help=True)
PAGE: Final = REPOSITORY / "docs" / "methods" / "second-coder.md"
RESULTS: Final = document.FOLDER / "agreement.json"
Resamples = Annotated[int, typer.Option(min=2, max=100_000, help="Draws of the bootstrap.")]
Out = Annotated[Path | None, typer.Option(help="File for the figures, as JSON.")]


@app.command()
def file(
    files: Annotated[list[Path], typer.Argument(help="JSON lines, one rating a line.")],
    ordered: Annotated[
        list[str] | None,
        typer.Option(help="Order of a variable's values, from least to most: NAME=none,weak,…"),
    ] = None,
    resamples: Resamples = RESAMPLES,
    out: Out = None,
) -> None:
    """Agreement of the coders in these files. Whole numbers are ordered, other values are not."""
    scales = dict(_scale(each) for each in ordered or ())
    print_agreement(read(files), scales, resamples, out)


@app.command(name="console")
def of_console(
    head: Annotated[
        list[str] | None, typer.Option(help="Only these heads; default: the three mechanisms.")
    ] = None,
    bundle: Annotated[
        str | None, typer.Option(help="The bundle that was rated; default: the newest.")
    ] = None,
    blind: Annotated[
        bool, typer.Option(help="Only blind ratings, given in calibration samples.")
    ] = True,
    files: Annotated[
        list[Path] | None,
        typer.Option("--with", help="Files of other coders on the same turns, such as an LLM's."),
    ] = None,
    resamples: Resamples = RESAMPLES,
    out: Out = None,
) -> None:
    """Agreement of supervisors with each other and with the bundle, on ratings in the database.

    The database is that of RAPPORT_DATABASE_URL; the reading is audited.
    """
    try:
        ratings, scales = console.read_database(Settings(), bundle, head, blind_only=blind)
    except RapportError as problem:
        raise SystemExit(f"error: {problem}") from None
    others = (each for each in read(files or ()) if each.variable in scales)
    print_agreement(chain(ratings, others), scales, resamples, out)


@app.command()
def rapport(
    out: Annotated[Path, typer.Option(help="File of ratings to write.")],
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    bundle: Annotated[Path, typer.Option(help="Folder of the bundle.")] = DEFAULT_BUNDLE,
) -> None:
    """Write the experts' and the bundle's values of the held-out tenth as a file of ratings."""
    expert, scored, _ = _held_out(bundle, data_dir)
    write(out, [*expert, *(rating for rating, _ in scored)])
    print(f"{len(expert) + len(scored)} values written to {out}")


@app.command()
def measure(
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    bundle: Annotated[Path, typer.Option(help="Folder of the bundle.")] = DEFAULT_BUNDLE,
    resamples: Resamples = RESAMPLES,
    out: Annotated[Path, typer.Option(help="File for the figures.")] = RESULTS,
    page: Annotated[Path, typer.Option(help="Page that gets the tables.")] = PAGE,
) -> None:
    """Measure experts with each other and with a shipped bundle; write figures and tables."""
    expert, scored, bundle_id = _held_out(bundle, data_dir)
    among = list(corpora.annotators(resolve_data_dir(data_dir)))
    compared = {
        "experts": among,
        "rapport": [*expert, *(rating for rating, _ in scored)],
        "answered": [*expert, *(rating for rating, answers in scored if answers)],
    }
    rows = {
        name: [row.as_json() for row in compared_by_variable(ratings, corpora.scales(), resamples)]
        for name, ratings in compared.items()
    }
    document.write_json(out, {"bundle": bundle_id, "resamples": resamples} | rows)
    tables(out, page)


@app.command()
def tables(
    results: Annotated[Path, typer.Option(help="File that `measure` wrote.")] = RESULTS,
    page: Annotated[Path, typer.Option(help="Page that gets the tables.")] = PAGE,
) -> None:
    """Print the tables of measured figures and write them into the page."""
    figures = json.loads(results.read_text(encoding="utf-8"))
    found = {name: agreement_table(figures[name]) for name in ("experts", "rapport", "answered")}
    print(*found.values(), sep="\n\n")
    page.write_text(with_tables(page.read_text(encoding="utf-8"), found), encoding="utf-8")


def _held_out(
    folder: Path, data_dir: Path | None
) -> tuple[list[Rating], list[tuple[Rating, bool]], str]:
    """Experts' labels and the bundle's values of its held-out tenth, and the bundle's name."""
    found = bundles.load(folder)
    if found.manifest.training.get("split") != DESCRIPTION:
        raise SystemExit(f"error: {folder} left out no tenth in training")
    try:
        seed = int(found.manifest.training["seed"])
        tested = corpora.held_out(resolve_data_dir(data_dir), seed)
    except MissingCorpusError as problem:
        raise SystemExit(f"error: {problem}") from None
    scored = list(corpora.rapport(OnnxScorer(found), tested))
    return list(corpora.experts(tested)), scored, f"{found.manifest.name} {found.manifest.version}"


def _scale(option: str) -> tuple[str, Scale]:
    name, equals, values = option.partition("=")
    labels = tuple(values.split(","))
    if not equals or len(labels) < 2 or len(set(labels)) < len(labels) or "" in labels:
        raise typer.BadParameter(f"{option!r}: NAME=VALUE,VALUE,… with different values")
    return name, Scale(labels, ordered=True)


if __name__ == "__main__":
    app()
