"""Compare whole trainings fold by fold: `python -m research.recipe.whole_recipe FIRST OTHER ...`.

Each folder is one of `models.fit.crossvalidate`: of the recipe, of another encoder (`--encoder`),
or of a student with teachers (`--teachers`). Compared are the folds that all of them have, on the
same held-out turns: EPITOME's levels, expected totals, and macro-F1 of the heads that learn from
other corpora; most probable labels, not calibrated. Writes docs/evaluation/whole_recipe.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from models.data import load_for_command
from models.evaluate.folds import Fold, load_folds
from models.evaluate.resampling import interval
from models.labels import HEADS, OUTCOME_HEADS, RATED
from models.pages import document
from research.recipe.encoder_mean import Outputs, averaged, figures, gain, joined, of_levels
from stream_app.contracts.scores import MECHANISMS

FILE = document.FOLDER / "whole_recipe.json"
OTHERS = tuple(
    head.name
    for head in HEADS
    if head.name not in (*MECHANISMS, *OUTCOME_HEADS) and head.name != RATED
)
MEAN = "mean of the first two"

Labels = dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]
"""By head: labels that people gave and most probable ones, [turns]."""


def labels(folds: list[Fold]) -> Labels:
    """All folds' labels of the heads in `OTHERS`."""
    heads = [fold.views["final"].heads for fold in folds]
    return {
        name: (
            np.concatenate([one[name].gold for one in heads]),
            np.concatenate([one[name].predicted for one in heads]),
        )
        for name in OTHERS
    }


def accuracy_gain(over: Outputs, other: Outputs) -> dict[str, Any]:
    """Mean accuracy of `other` minus that of `over` in per cent, on the same resamples."""
    right = [
        100.0 * (each.log_probabilities.argmax(-1) == each.gold).mean(1) for each in (over, other)
    ]
    difference = right[1] - right[0]
    return interval(np.arange(len(difference)), lambda rows: float(difference[rows].mean()))


def title(folder: Path) -> str:
    """The encoder, and its teacher if it had one."""
    found = sorted(folder.glob("*/training.json"))
    if not found:
        raise SystemExit(
            f"error: {folder} has no trained fold: run python -m models.fit.crossvalidate"
        )
    about = json.loads(found[0].read_text(encoding="utf-8"))
    teacher = about.get("teacher")
    return f"{about['base_model']}, distilled from {teacher}" if teacher else about["base_model"]


def compared(trainings: dict[str, list[Fold]]) -> dict[str, Any]:
    """Figures by training, on the folds that all have; gains are over the first one.

    Raises:
        ValueError: they have no fold in common.
    """
    shared = set.intersection(*({fold.number for fold in of} for of in trainings.values()))
    if not shared:
        raise ValueError("the trainings have no fold in common")
    used = {
        name: [fold for fold in folds if fold.number in shared] for name, folds in trainings.items()
    }
    parts = {
        name: [of_levels(fold.views["final"]) for fold in folds] for name, folds in used.items()
    }
    levels = {name: joined(one) for name, one in parts.items()}
    first, *others = levels
    if others:
        pairs = zip(parts[first], parts[others[0]], strict=True)
        levels[MEAN] = joined([averaged(list(pair)) for pair in pairs])
    rows = {name: figures(one) for name, one in levels.items()}
    for name, one in levels.items():
        if name != first:
            rows[name]["gain"] = gain(levels[first], one)
            rows[name]["accuracy_gain"] = accuracy_gain(levels[first], one)
    for name, folds in used.items():
        rows[name]["others"] = {
            head: float(f1_score(gold, found, average="macro"))
            for head, (gold, found) in labels(folds).items()
        }
    return {"folds": sorted(shared), "rows": rows}


def main(
    folders: Annotated[list[Path], typer.Argument(help="Folders with trained folds.")],
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="File to write.")] = FILE,
) -> None:
    """Compare the trainings and write the figures."""
    titles = [title(folder) for folder in folders]
    if len(set(titles)) < len(titles):
        raise SystemExit(f"error: two folders have the same encoder and teacher: {titles}")
    conversations = load_for_command(data_dir)
    trainings = [load_folds(folder, conversations) for folder in folders]
    try:
        result = compared(dict(zip(titles, trainings, strict=True)))
    except ValueError as problem:
        raise SystemExit(f"error: {problem}") from problem
    document.write_json(out, result)
    document.write(out.parent)
    for name, row in result["rows"].items():
        print(
            f"{name}: Spearman {row['spearman']['value']:.3f}, accuracy {100 * row['accuracy']:.1f}"
            f", macro-F1 {100 * row['macro_f1']:.1f}"
        )


if __name__ == "__main__":
    typer.run(main)
