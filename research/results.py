"""Result files of the methods: one JSON a method, one row for each variant.

    research/results/NAME.json
    {"command", "of", "seed", "rows": {KEY: ROW}}
    ROW = {"words", "context", "parameters", "folds", "heads": {MECHANISM: {FIGURE: SPREAD}}}
    SPREAD = {"mean", "sd", "folds": [value of each fold]}

`research.compare` reads them, so that every method can be run alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.labels import RATIONALE_ORDER
from models.pages import report
from models.pages.document import write_json
from research.folds import FOLDS, SEED

FOLDER = Path("research/results")

Ints = NDArray[np.int64]


def level_figures(gold: Sequence[Ints], given: Sequence[Ints]) -> dict[str, Any]:
    """Figures by mechanism from labelled and predicted levels, [n, 3] a fold."""
    return {
        head: report.labels_over_folds(head, [g[:, i] for g in gold], [a[:, i] for a in given])
        for i, head in enumerate(RATIONALE_ORDER)
    }


def read(name: str, folder: Path = FOLDER) -> dict[str, Any]:
    """A method's result file; empty if the method has not been run."""
    path = folder / f"{name}.json"
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return content


def write_row(
    name: str, key: str, row: dict[str, Any], command: str, folder: Path = FOLDER
) -> Path:
    """Add or replace one row of a method's file."""
    content = read(name, folder) or {"command": command, "of": FOLDS, "seed": SEED, "rows": {}}
    content["rows"][key] = report.rounded(row)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / f"{name}.json", content)
    return folder / f"{name}.json"


def items_a_step(setting: dict[str, Any]) -> int:
    """Items of a training step in a row's setting; earlier rows named them after the method."""
    return next(int(setting[key]) for key in ("batch", "pairs", "windows") if key in setting)
