"""Values of docs/methods/window-classifier.md."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import Any

from models.pages.published import XU_JIANG_CONTEXT, XU_JIANG_LOSSES
from models.pages.tables import NONE, percent, spread, table
from research.method import Content
from research.page import NOT_MEASURED
from research.results import read
from research.window_classifier.design import PLANNED, Design, design_of

NAME = "window_classifier"


def designs(rows: Content) -> list[Design]:
    """The planned rows, and others that were run."""
    others = [design_of(key) for key in rows if key not in {each.key for each in PLANNED}]
    return [*PLANNED, *others]


def _amount(row: Content) -> list[str]:
    return [
        ", ".join(map(str, row["folds"])),
        ", ".join(f"{count:,}" for count in row["items"]),
        ", ".join(f"{count:,}" for count in row["tested"]),
    ]


START = ("window", "loss", "folds", "training turns", "tested turns")
FIGURES = {"accuracy": "accuracy", "macro_f1": "macro-F1", "mcc": "MCC"}
LEVELS = FIGURES | {"f1_weak": "F1 of weak", "f1_strong": "F1 of strong"}
LOSSES = {"cross_entropy": "cross-entropy", "ldam": "LDAM"}


def rows_of(task: str, names: dict[str, str], rows: Content) -> str:
    """The table of a task: means over its heads, and for strategies over the seven tasks."""
    seven = {"f1": "tasks' F1", "accuracy": "tasks' acc."} if task == "strategy" else {}
    cells = []
    for design in (each for each in designs(rows) if each.task == task):
        row = rows.get(design.key)
        start = [design.context, LOSSES.get(design.loss, design.loss)]
        if row is None:
            cells.append([*start, NOT_MEASURED, *([NONE] * (2 + len(names) + len(seven)))])
            continue
        heads = [row["heads"][head] for head in design.heads]
        means = [
            spread(heads[0][name])
            if len(heads) == 1
            else percent(mean(head[name]["mean"] for head in heads))
            for name in names
        ]
        means += [spread(row["tasks"][name]) for name in seven]
        cells.append([*start, *_amount(row), *means])
    return table((*START, *names.values(), *seven.values()), cells, left=2)


def setting(rows: Content) -> str:
    """The hyperparameters of the measured rows."""
    if not rows:
        return "Nothing was trained here."
    settings = {tuple(sorted(row["setting"].items())) for row in rows.values()}
    words = []
    for each in sorted(settings, key=str):
        one = dict(each)
        precision = "bfloat16" if one["bf16"] else "float32"
        words.append(
            f"{one['epochs']} epochs of {one['batch']} windows a step, encoder rate"
            f" {one['encoder_rate']:g}, word embeddings and the lowest {one['frozen_layers']}"
            f" layers frozen, {precision}"
        )
    different = dict.fromkeys(words)  # shares of the turns are in the tables
    return f"Trained for {'; or for '.join(different)}. Theirs: up to 30 epochs at a rate of 5e-6."


def published() -> str:
    """Tables 5 and 6 of the paper."""
    header = ("row", "macro precision", "macro recall", "macro-F1", "accuracy")
    rows = [
        [name, *(f"{value:.1f}" for value in values)]
        for name, values in (*XU_JIANG_LOSSES.items(), *XU_JIANG_CONTEXT.items())
    ]
    return table(header, rows)


def values(results: Path) -> dict[str, Any]:
    """Tables and hyperparameters of the measured rows."""
    rows = read(NAME, results).get("rows", {})
    return {
        "strategies": rows_of("strategy", FIGURES, rows),
        "levels": rows_of("levels", LEVELS, rows),
        "perceived": rows_of("perceived", FIGURES, rows),
        "encoder": ", ".join(sorted({row["encoder"] for row in rows.values()}))
        or "all-MiniLM-L6-v2",
        "setting": setting(rows),
        "published": published(),
    }
