"""`python -m research.micromodels.few_seeds`: seed sizes and explanations, one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from models.data import epitome
from models.data.corpora import Conversation, MissingCorpusError, Turn, resolve_data_dir
from models.labels import COUNSELLOR, RATIONALE_ORDER
from models.model.encoder import load_tokenizer
from models.pages.document import write_json
from models.pages.report import rounded
from research import results
from research.folds import FOLDS, SEED, parts
from research.micromodels import page
from research.micromodels.explanation import explain, importances, in_words
from research.micromodels.model import Micromodels
from research.micromodels.scorer import warmed
from research.micromodels.seed_sizes import over_all_folds, study

NAME, COMMAND = "micromodel_seeds", "python -m research.micromodels.few_seeds"
EXAMPLE = "I am so sorry that you had to go through this. What happened after that?"


def without_rationale(pairs: list[Conversation]) -> dict[str, float]:
    """Share of responses without an annotated rationale, by mechanism."""
    turns = [pair.turns[-1] for pair in pairs]
    return {
        head: float(np.mean([not t.rationales[head] for t in turns if head in t.rationales]))
        for head in RATIONALE_ORDER
    }


def main(
    folds: Annotated[list[int] | None, typer.Option(help="Folds of five; default: all.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the result file.")] = results.FOLDER,
    pages: Annotated[Path, typer.Option(help="Folder of the page.")] = page.FOLDER,
    threads: int = 1,
) -> None:
    """Remove seeds step by step, and explain one prediction."""
    torch.set_num_threads(threads)
    try:
        pairs = list(epitome.load(resolve_data_dir(data_dir)))
    except MissingCorpusError as problem:
        raise SystemExit(f"error: {problem}") from problem
    embed, tokenizer = warmed(pairs), load_tokenizer()
    numbers = folds or list(range(FOLDS))
    content: dict[str, Any] = {"command": COMMAND, "folds": numbers, "of": FOLDS, "seed": SEED}
    found = []
    for part in parts(pairs, numbers):
        fitted = Micromodels(part.train, embed, tokenizer)
        found.append(study(fitted, part.train, part.test, part.number))
        print(f"fold {part.number}", flush=True)
        if "example" not in content:
            content["example"] = in_words(explain(fitted, Turn(COUNSELLOR, EXAMPLE)), seeds=False)
            content["importances"] = importances(fitted)
    content["empty"] = without_rationale(pairs)
    content["rows"] = over_all_folds(found)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / f"{NAME}.json", rounded(content))
    print(page.write(rounded(content), pages))


if __name__ == "__main__":
    typer.run(main)
