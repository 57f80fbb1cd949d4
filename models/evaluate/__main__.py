"""`python -m models.evaluate --folds build/folds`: cross-validated tables and figures.

Writes docs/evaluation/*.json, the reliability diagrams and docs/evaluation.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from models.data import load_for_command
from models.evaluate.folds import load_folds, plan
from models.pages import document, tables
from models.pages.report import CrossValidation


def main(
    folds: Annotated[Path, typer.Option(help="Folder with one model per fold.")] = Path(
        "build/folds"
    ),
    out: Annotated[Path, typer.Option(help="Output folder.")] = document.FOLDER,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    threads: int = 2,
    pictures: Annotated[bool, typer.Option(help="Draw the reliability diagrams.")] = True,
) -> None:
    """Evaluate every trained fold and report their number."""
    torch.set_num_threads(threads)
    loaded = load_folds(folds, load_for_command(data_dir))
    if not loaded:
        raise SystemExit(
            f"error: {folds} contains no trained fold: run python -m models.fit.crossvalidate"
        )
    planned, _ = plan(folds)
    results = CrossValidation(loaded, planned).tables()
    out.mkdir(parents=True, exist_ok=True)
    for name, table in results.items():
        document.write_json(out / f"{name}.json", table)
    if pictures:
        # matplotlib belongs to the training extra; the tables do not need it.
        from models.pages.plots import draw_reliability  # noqa: PLC0415

        draw_reliability(results["calibration"], out / "reliability.svg")
    page = document.write(out)
    print(tables.everything(results))
    print(f"{len(loaded)} of {planned} folds; {page} written")


if __name__ == "__main__":
    typer.run(main)
