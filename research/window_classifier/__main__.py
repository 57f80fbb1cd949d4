"""`python -m research.window_classifier`: train and test window classifiers on our folds.

Each row is added to research/results/window_classifier.json and to
docs/methods/window-classifier.md when it is finished.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from models.data import load_for_command
from research import results, resumable
from research.fine_tuning import Hyperparameters
from research.window_classifier import page
from research.window_classifier.design import PLANNED, design_of
from research.window_classifier.measure import Amount, row_of
from research.window_classifier.training import DEFAULTS


def main(
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="These rows, TASK-BEFORE-AFTER-LOSS, such as strategy-3-0-focal; default: all"
            " rows of the page."
        ),
    ] = None,
    folds: Annotated[list[int] | None, typer.Option(help="Folds of five; default: fold 0.")] = None,
    share: Annotated[
        float, typer.Option(min=0.001, max=1, help="Share of the training conversations.")
    ] = 1.0,
    test_share: Annotated[
        float, typer.Option(min=0.001, max=1, help="Share of the test conversations.")
    ] = 1.0,
    epochs: int = DEFAULTS.epochs,
    encoder_rate: float = DEFAULTS.encoder_rate,
    frozen_layers: int = DEFAULTS.frozen_layers,
    encoder: Annotated[
        str | None, typer.Option(help="Folder or hub name of another pretrained encoder.")
    ] = None,
    bf16: Annotated[bool, typer.Option(help="bfloat16 in the encoder.")] = True,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the result file.")] = results.FOLDER,
    pages: Annotated[Path, typer.Option(help="Folder of the page.")] = page.FOLDER,
    checkpoints: Annotated[
        Path, typer.Option(help="Folder from which interrupted trainings continue.")
    ] = resumable.FOLDER,
    threads: int = 2,
) -> None:
    """Train and test window classifiers (Xu & Jiang 2024, section 4.2 and Tables 5 and 6)."""
    torch.set_num_threads(threads)
    try:
        designs = [design_of(key) for key in only] if only else list(PLANNED)
    except ValueError as problem:
        raise SystemExit(f"error: {problem}") from None
    chosen = Hyperparameters(
        epochs=epochs, encoder_rate=encoder_rate, frozen_layers=frozen_layers, bf16=bf16
    )
    conversations = load_for_command(data_dir)
    for design in designs:
        row = row_of(
            design,
            conversations,
            folds or [0],
            Amount(share, test_share),
            chosen,
            encoder,
            checkpoints,
        )
        print(results.write_row(page.NAME, design.key, row, page.COMMAND, out))
        page.write(out, pages)


if __name__ == "__main__":
    typer.run(main)
