"""`python -m research.micromodels.explain TEXT`: explain a response's levels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from models.data import epitome
from models.data.corpora import MissingCorpusError, Turn, resolve_data_dir
from models.labels import COUNSELLOR
from models.model.encoder import load_tokenizer
from research.folds import part_of
from research.micromodels.explanation import explain, in_words
from research.micromodels.model import Micromodels
from research.micromodels.scorer import warmed


def main(
    text: Annotated[str, typer.Argument(help="The response; no context is read.")],
    fold: Annotated[int, typer.Option(help="The fold whose training part provides seeds.")] = 0,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    threads: int = 1,
) -> None:
    """Print similarities, scores and rationales of one response."""
    torch.set_num_threads(threads)
    try:
        pairs = list(epitome.load(resolve_data_dir(data_dir)))
    except MissingCorpusError as problem:
        raise SystemExit(f"error: {problem}") from problem
    part = part_of(pairs, fold)
    fitted = Micromodels(part.train, warmed(pairs), load_tokenizer())
    print(in_words(explain(fitted, Turn(COUNSELLOR, text))))


if __name__ == "__main__":
    typer.run(main)
