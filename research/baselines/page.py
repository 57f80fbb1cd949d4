"""Values of docs/methods/baselines.md: the simple methods and the bi-encoder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from models.labels import RATIONALE_ORDER
from models.pages.document import FOLDER as EVALUATION
from models.pages.published import EPITOME_TABLE_5
from models.pages.tables import NONE, spread, table
from research.bi_encoder.design import DESIGNS
from research.method import Content
from research.page import NOT_MEASURED, SHORT, setting_of
from research.results import read

LEVELS, SPANS = ("accuracy", "macro_f1"), ("token_f1", "iou_f1")
NAMES = {"accuracy": "acc.", "macro_f1": "F1", "token_f1": "T-F1", "iou_f1": "IOU"}
PUBLISHED = {
    "bi_encoder": "full model",
    "no_attention": "-attention",
    "no_seeker": "-seeker post",
    "no_rationales": "-rationales",
    "no_pretraining": "-pre-training",
}


def values(results: Path) -> dict[str, Any]:
    """Tables, and the hyperparameters of the measured rows of the bi-encoder."""
    trained = read("bi_encoder", results).get("rows", {})
    rows = list(_rows(results, trained))
    marked = [
        row for row in rows if row[2] is not None and "token_f1" in row[2][RATIONALE_ORDER[0]]
    ]
    return {
        "levels": _table(rows, LEVELS),
        "spans": _table(marked, SPANS) if marked else None,
        "published": published(),
        **setting_of(trained),
    }


def _rows(results: Path, trained: Content) -> Iterator[tuple[str, str, Content | None]]:
    """Words, folds and figures by mechanism of every row; None for rows that were not run."""
    path = EVALUATION / "baselines.json"
    if path.is_file():
        content = json.loads(path.read_text(encoding="utf-8"))
        heads = content["heads"]
        for key, words in (
            ("majority", "most frequent level"),
            ("words", "tf-idf of the response"),
        ):
            own = {head: heads[head][key] for head in RATIONALE_ORDER}
            yield words, _folds(content["folds"]), own
    for row in read("frozen_levels", results).get("rows", {}).values():
        yield row["words"], _folds(row["folds"]), row["heads"]
    for key, design in DESIGNS.items():
        row = trained.get(key)
        if row is None:
            yield design.words, NOT_MEASURED, None
        else:
            yield named(row), _folds(row["folds"]), row["heads"]


def named(row: Content) -> str:
    """A row's words, with its number of epochs: rows of unequal epochs do not show a design."""
    epochs = row["setting"]["epochs"]
    return f"{row['words']} ({epochs} {'epoch' if epochs == 1 else 'epochs'})"


def _folds(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _table(rows: list[tuple[str, str, Content | None]], figures: tuple[str, ...]) -> str:
    header = [f"{SHORT[head]} {NAMES[name]}" for head in RATIONALE_ORDER for name in figures]
    cells = []
    for words, folds, heads in rows:
        found = [
            spread(heads[head].get(name)) if heads else NONE
            for head in RATIONALE_ORDER
            for name in figures
        ]
        cells.append([words, folds, *found])
    return table(("method", "folds", *header), cells, left=2)


def published() -> str:
    """Table 5 of the paper."""
    header = [f"{SHORT[h]} {NAMES[n]}" for h in RATIONALE_ORDER for n in (*LEVELS, *SPANS)]
    rows = [
        [PUBLISHED[key], *(NONE if value is None else f"{value:.1f}" for value in values)]
        for key, values in EPITOME_TABLE_5.items()
    ]
    return table(("row", *header), rows)
