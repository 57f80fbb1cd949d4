"""`python -m research.micromodels`: micromodels (Lee et al. 2023) on the models' folds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from models.data import epitome
from models.data.corpora import MissingCorpusError, resolve_data_dir
from models.model.encoder import load_tokenizer
from models.pages.published import MAJORITY, MICROMODELS
from research.folds import FOLDS, SEED
from research.micromodels.evaluation import evaluate, markdown, summary
from research.micromodels.scorer import warmed


def main(
    out: Annotated[Path, typer.Option(help="File to write the figures to.")] = Path(
        "docs/evaluation/micromodels.json"
    ),
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    threads: int = 1,
) -> None:
    """Fit and test micromodels on the models' folds."""
    torch.set_num_threads(threads)
    try:
        pairs = list(epitome.load(resolve_data_dir(data_dir)))
    except MissingCorpusError as problem:
        raise SystemExit(f"error: {problem}") from problem
    embed, tokenizer = warmed(pairs), load_tokenizer()
    content: dict[str, Any] = {"folds": FOLDS, "seed": SEED, "encoder": "all-MiniLM-L6-v2"}
    for name, own_seeds in (("micromodels", False), ("own_seeds", True)):
        content[name] = summary(evaluate(pairs, embed, tokenizer, own_seeds=own_seeds))
    content["published"] = {"micromodels": MICROMODELS, "majority": MAJORITY}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(markdown(content))


if __name__ == "__main__":
    typer.run(main)
