"""`python -m research`: run the published methods, and write their pages."""

from __future__ import annotations

import time
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from models.data.corpora import MissingCorpusError
from research import page as pages_of
from research import results
from research.method import CHECKPOINTS, PAGES, RESULTS, Inputs, Method, MethodError, Run
from research.registry import METHODS, load

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.command("list")
def list_methods() -> None:
    """List the methods with their papers, rows and settings."""
    for name in METHODS:
        method = load(name)
        print(f"{name}: {method.paper}")
        for key, row in method.rows().items():
            print(f"  {key}: {row.words}")
        settings = (f"{each.name}={getattr(method, each.name)}" for each in fields(method))  # type: ignore[arg-type]
        print(f"  --set: {' '.join(settings)}")


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="A method of `list`.")],
    row: Annotated[list[str] | None, typer.Option(help="These rows; default: all.")] = None,
    fold: Annotated[
        list[int] | None, typer.Option(min=0, max=4, help="These folds; default: the method's.")
    ] = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the method: NAME=VALUE.")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the result file.")] = None,
    pages: Annotated[Path, typer.Option(help="Folder of the page.")] = PAGES,
    checkpoints: Annotated[
        Path, typer.Option(help="Folder from which interrupted trainings continue.")
    ] = CHECKPOINTS,
    threads: int = 2,
) -> None:
    """Run a method; each row is stored, and the page rewritten, as soon as it is finished."""
    import torch  # noqa: PLC0415  (the other commands start without it)

    torch.set_num_threads(threads)
    inputs = Inputs(data_dir, checkpoints)
    try:
        method = load(name, change or [])
        planned = {key: method.row(key) for key in row or method.rows()}
        if fold and len(fold) > 1 and not method.over_folds:
            raise MethodError(f"{name} runs on one fold")
        for key, about in planned.items():
            if about.needs is not None and not about.needs.is_file():
                print(f"{key}: {about.needs} is missing")
                continue
            runs = [_run(method, key, number, inputs) for number in fold or method.folds]
            folder = out or method.file_folder
            content = method.stored(results.read(name, folder), key, runs)
            print(results.write(name, content, folder))
            pages_of.write(method, folder, pages)
    except (MethodError, MissingCorpusError) as problem:
        raise SystemExit(f"error: {problem}") from problem


def _run(method: Method, row: str, fold: int, inputs: Inputs) -> Run:
    started = time.monotonic()
    found = method.run(row, fold, inputs)
    minutes = (time.monotonic() - started) / 60
    print(f"{method.name}, {row}, fold {fold}: {minutes:.1f} minutes", flush=True)
    return Run(fold, minutes, found)


@app.command()
def page(
    name: Annotated[
        list[str] | None, typer.Argument(help="Methods of `list`; default: all that have a page.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the result files.")] = RESULTS,
    pages: Annotated[Path, typer.Option(help="Folder of the pages.")] = PAGES,
) -> None:
    """Write pages of docs/methods from the result files."""
    try:
        for each in name or METHODS:
            written = pages_of.write(load(each), out, pages)
            if written is None and name:
                raise MethodError(f"{each} has no page, or too little of it was measured")
            if written is not None:
                print(written)
    except MethodError as problem:
        raise SystemExit(f"error: {problem}") from problem


if __name__ == "__main__":
    app()
