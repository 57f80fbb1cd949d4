"""`python -m models.fit.crossvalidate --out build/folds`: train one model per fold.

A fold's test part consists of whole conversations, or of all responses to one seeker post. Finished
folds are skipped, so an interrupted run can be resumed.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import torch
import typer

from models.data import load_for_command
from models.data.corpora import resolve_data_dir
from models.data.split import split_fold
from models.fit.train import Recipe, train
from models.model.frozen import LowerStates
from models.model.losses import LossName


def main(
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="Folder with one folder per fold.")] = Path(
        "build/folds"
    ),
    folds: Annotated[int, typer.Option(help="Number of folds.")] = 5,
    only: Annotated[list[int] | None, typer.Option(help="Train only these folds.")] = None,
    epochs: int = Recipe.epochs,
    seed: int = Recipe.seed,
    threads: int = 2,
    loss: LossName = Recipe.loss,
    frozen_layers: Annotated[
        int, typer.Option(help="Number of lowest layers to freeze.")
    ] = Recipe.frozen_layers,
    contrast: Annotated[bool, typer.Option(help="Train with context contrast.")] = True,
    bf16: Annotated[
        bool, typer.Option(help="bfloat16 in the encoder; slower where the processor lacks it.")
    ] = True,
    encoder: Annotated[
        str | None, typer.Option(help="Folder or hub name of another pretrained encoder.")
    ] = None,
    teachers: Annotated[
        Path | None,
        typer.Option(help="Folder with one teacher per fold; a fold learns from its own."),
    ] = None,
) -> None:
    """Train the folds one after the other."""
    torch.set_num_threads(threads)
    recipe = Recipe(
        epochs=epochs,
        seed=seed,
        loss=loss,
        bf16=bf16,
        frozen_layers=frozen_layers,
        contrast=contrast,
    )
    conversations = load_for_command(data_dir)
    lower = LowerStates()
    for fold in only or range(folds):
        folder = out / str(fold)
        if (folder / "training.json").is_file():
            print(f"fold {fold} is finished", flush=True)
            continue
        started = time.monotonic()
        parts = split_fold(conversations, fold, folds, seed)
        train(
            conversations,
            parts,
            recipe,
            folder,
            data_dir=resolve_data_dir(data_dir),
            split_words=f"fold {fold} of {folds}",
            lower=lower,
            resume=True,
            encoder=encoder,
            teacher=teachers / str(fold) if teachers else None,
        )
        print(f"fold {fold}: {(time.monotonic() - started) / 60:.1f} minutes", flush=True)
    (out / "folds.json").write_text(json.dumps({"folds": folds, "seed": seed}) + "\n")


if __name__ == "__main__":
    typer.run(main)
