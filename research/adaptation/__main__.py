"""`python -m research.adaptation`: how many ratings until an adaptation pays (docs/adaptation.md).

Simulated raters judge real chats that a shipped bundle has scored. They differ from the bundle by a
known rule (`research.adaptation.raters`). `--adapter` compares an adapter
(`research.adaptation.adapter`) with the recalibration of `rapport bundle adapt`, same ratings.
`--write` puts the tables into docs/adaptation.md.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Annotated

import torch
import typer

from models.data.corpora import REPOSITORY, resolve_data_dir
from models.pages.tables import with_tables
from research.adaptation import figures, learning_curve
from research.adaptation.learning_curve import ADAPTER_SIZES, METHODS, SIZES, Run
from research.adaptation.platform import score
from research.adaptation.raters import HEAD, RATERS
from stream_app.inference.bundles.bundle import SHIPPED

PAGE = REPOSITORY / "docs" / "adaptation.md"


def main(
    bundle: Annotated[Path, typer.Option(help="Folder of the bundle.")] = SHIPPED / "nano",
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[
        Path, typer.Option(help="File of the runs; those that it has are not repeated.")
    ] = Path("build/adaptation.jsonl"),
    platforms: Annotated[
        int, typer.Option(min=0, help="Platforms for each number of ratings and kind of raters.")
    ] = 20,
    adapter: Annotated[bool, typer.Option(help="Compare the two methods.")] = False,
    write: Annotated[bool, typer.Option(help=f"Put the tables into docs/{PAGE.name}.")] = False,
) -> None:
    """Simulate platforms, print how many ratings they need, and keep every run in a file."""
    torch.set_num_threads(1)
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = out.read_text(encoding="utf-8").splitlines() if out.is_file() else []
    runs = [Run(**json.loads(line)) for line in lines]
    done = {(run.seed, run.ratings, run.raters, run.method) for run in runs}
    sizes, methods = (ADAPTER_SIZES, METHODS) if adapter else (SIZES, ["recalibration"])
    wanted = product(range(platforms), sizes, RATERS, methods)
    todo = [one for one in wanted if one not in done]
    if todo:
        platform = score(bundle, resolve_data_dir(data_dir), HEAD)
        for seed, size, raters, method in todo:
            run = learning_curve.simulate(platform, raters, size, seed, method)
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(run)) + "\n")
            runs.append(run)
    tables = figures.adapter_tables(runs) if adapter else figures.tables(runs)
    print(*tables.values(), sep="\n\n")
    if write:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
