"""`python -m research.transfer`: transfer between the empathy tasks at hand.

Writes research/results/transfer.json and docs/methods/transfer.md. `--layers KIND` trains
adapters or LoRA inside the encoder instead, for the pairs of `--source` and `--target`, and adds
them to research/results/transfer_layers.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import typer

from models.data import load_for_command
from models.data.corpora import MissingCorpusError, resolve_data_dir
from models.pages.document import write_json
from models.pages.report import rounded
from research import results
from research.sentence_vectors import CORPORA_CACHE, SentenceEncoder
from research.transfer import page
from research.transfer.importance import features, importances
from research.transfer.items import Data, load
from research.transfer.pairs import all_pairs
from research.transfer.stack import Training
from research.transfer.tasks import BY_NAME, at_hand

NAME = "transfer"


def parts(names: list[str], data_dir: Path | None, fold: int, most: tuple[int, int]) -> list[Data]:
    """The tasks' parts in one fold; exits if a corpus is missing."""
    conversations = load_for_command(data_dir)
    try:
        folder = resolve_data_dir(data_dir)
        return [load(BY_NAME[name], conversations, folder, fold, most) for name in names]
    except (MissingCorpusError, ValueError) as problem:
        raise SystemExit(f"error: {problem}") from problem


def _others(stored: list[dict[str, Any]], measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of pairs that were not remeasured."""
    new = [(row["kind"], row["source"], row["target"]) for row in measured]
    return [row for row in stored if (row["kind"], row["source"], row["target"]) not in new]


def main(
    source: Annotated[
        list[str] | None, typer.Option(help="With --layers: intermediate tasks.")
    ] = None,
    target: Annotated[list[str] | None, typer.Option(help="With --layers: target tasks.")] = None,
    layers: Annotated[
        Literal["bottleneck", "lora"] | None, typer.Option(help="Adapters inside the encoder.")
    ] = None,
    fold: Annotated[int, typer.Option(help="Fold to test on.")] = 0,
    most_train: Annotated[int, typer.Option(help="Training items of a task.")] = 1200,
    most_test: Annotated[int, typer.Option(help="Test items of a task.")] = 600,
    epochs: int = Training.epochs,
    encoder: Annotated[
        str | None, typer.Option(help="Folder or hub name of another encoder.")
    ] = None,
    cache: Annotated[Path, typer.Option(help="File with the encoder's vectors.")] = CORPORA_CACHE,
    bf16: Annotated[bool, typer.Option(help="bfloat16 in the encoder.")] = True,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the result files.")] = results.FOLDER,
    pages: Annotated[Path, typer.Option(help="Folder of the page.")] = page.FOLDER,
    threads: int = 1,
) -> None:
    """Transfer from every task to every other one, and what predicts it."""
    torch.set_num_threads(threads)
    most = (most_train, most_test)
    if unknown := {*(source or ()), *(target or ())} - set(BY_NAME):
        raise SystemExit(f"error: no task {', '.join(sorted(unknown))}")
    if layers is not None:
        from research.transfer.layers import run  # noqa: PLC0415

        data = parts([*(source or ()), *(target or ())], data_dir, fold, most)
        content = run(data[: len(source or ())], data[len(source or ()) :], layers, epochs, encoder)
        stored = results.read("transfer_layers", out) or {"fold": fold, "transfers": []}
        stored["transfers"] = [*_others(stored["transfers"], content), *rounded(content)]
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / "transfer_layers.json", stored)
    else:
        tasks = parts([task.name for task in at_hand()], data_dir, fold, most)
        encode = SentenceEncoder(cache, encoder, bf16=bf16)
        found: dict[str, Any] = all_pairs(tasks, encode, Training(epochs=epochs))
        _, groups, changes = features(found)
        found |= {"fold": fold, "epochs": epochs, "importance": importances(groups, changes)}
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / f"{NAME}.json", rounded(found, 4))
    path = out / f"{NAME}.json"
    if path.is_file():
        content = json.loads(path.read_text(encoding="utf-8"))
        print(page.write(content, results.read("transfer_layers", out), pages))


if __name__ == "__main__":
    typer.run(main)
