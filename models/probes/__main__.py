"""`python -m models.probes --bundle FOLDER`: is a scorer fooled by misplaced empathic phrases?

Writes one entry per scorer to docs/evaluation/probes.json, and prints it as Markdown.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from models.data import epitome
from models.data.corpora import MissingCorpusError, resolve_data_dir
from models.data.split import split, split_fold
from models.probes import report, scorers
from models.probes.cases import cases
from models.probes.scorers import LevelScorer

FOLDS, SEED = 5, 17


def main(
    bundle: Annotated[Path | None, typer.Option(help="Bundle folder.")] = None,
    model: Annotated[Path | None, typer.Option(help="Model folder of models.fit.train.")] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the entry; default: the folder's.")
    ] = None,
    calibration: Annotated[Path | None, typer.Option(help="Level offsets for --model.")] = None,
    fold: Annotated[int | None, typer.Option(help="Fold of the held-out responses.")] = None,
    out: Annotated[Path, typer.Option(help="File with the entries of all scorers.")] = Path(
        "docs/evaluation/probes.json"
    ),
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    size: Annotated[int, typer.Option(help="Cases per condition and mechanism.")] = 1000,
    threads: int = 1,
) -> None:
    """Run the context probe on one scorer."""
    chosen = bundle or model
    if chosen is None or (bundle is not None and model is not None):
        raise typer.BadParameter("give one of --bundle and --model")
    try:
        folder = resolve_data_dir(data_dir)
        pairs = list(epitome.load(folder))
        parts = split(pairs, SEED) if fold is None else split_fold(pairs, fold, FOLDS, SEED)
        given = cases(folder, parts["test"], size, SEED)
    except MissingCorpusError as problem:
        raise SystemExit(f"error: {problem}") from problem
    scorer: LevelScorer
    if bundle is not None:
        scorer = scorers.of_bundle(bundle, threads)
    else:
        import torch  # noqa: PLC0415 (bundles are probed without it)

        torch.set_num_threads(threads)
        scorer = scorers.of_model(chosen, calibration)
    entry = report.measure(scorer, given)
    entry["heldout"] = "test part" if fold is None else f"fold {fold} of {FOLDS}"
    title = name or chosen.name
    content = report.store(out, title, entry, {"size": size, "seed": SEED})
    print(report.markdown(content))
    print(f"\n{title}, phrase by phrase:\n\n{report.phrases_markdown(entry)}")


if __name__ == "__main__":
    typer.run(main)
