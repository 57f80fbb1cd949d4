"""The table and the picture of all methods, in docs/methods/comparison.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Picture

from models.pages.plots import AFTER, BEFORE, GRID
from models.pages.tables import NONE, percent, table
from research.compare.cost import Cost
from research.compare.entries import Entry
from research.compare.figures import Figure, Quality
from research.folds import FOLDS, SEED
from research.method import Content
from research.page import NOT_MEASURED

NAME, PICTURE = "comparison", "comparison.svg"

Rows = list[tuple[Entry, Quality | None, Cost | None]]

HEADER = (
    "method",
    "context",
    "folds",
    "accuracy",
    "macro-F1",
    "macro-F1, fold 0",
    "MCC",
    "token F1",
    "IOU-F1",
    "million parameters",
    "turns/s",
    "MiB",
)


def spread(figure: Figure | None) -> str:
    """Mean ± sd in per cent."""
    if figure is None:
        return NONE
    sd = figure.sd
    return percent(figure.mean) + (f" ± {percent(sd)}" if sd else "")


def cells(method: Entry, quality: Quality | None, cost: Cost | None) -> list[str]:
    """One row of the table."""
    figures = quality.figures if quality else {}
    macro = figures.get("macro_f1")
    known = quality.parameters if quality else None
    return [
        method.words,
        method.context,
        ", ".join(map(str, quality.folds)) if quality and figures else NOT_MEASURED,
        spread(figures.get("accuracy")),
        spread(macro),
        percent(macro.of(0)) if macro else NONE,
        spread(figures.get("mcc")),
        spread(figures.get("token_f1")),
        spread(figures.get("iou_f1")),
        f"{known / 1e6:.1f}" if known else NONE,
        f"{cost.turns_a_second:,.0f}" if cost else NONE,
        f"{cost.memory:,.0f}" if cost else NONE,
    ]


def commands(rows: Rows) -> str:
    """Each source's command, once."""
    lines = dict.fromkeys(f"- {entry.source}: `{entry.command}`" for entry, _, _ in rows)
    return "\n".join(lines)


def values(rows: Rows, cost: Content) -> Content:
    """Table, commands, and how the cost was measured."""
    machine = cost["machine"]
    return {
        "of": FOLDS,
        "seed": SEED,
        "table": table(HEADER, [cells(*row) for row in rows], left=3),
        "rounds": cost["rounds"],
        "turns": cost["turns"],
        "cost_note": f"The machine: {machine}."
        if machine
        else "Cost was not measured in this run.",
        "missing": NOT_MEASURED,
        "commands": commands(rows),
    }


def draw(rows: Rows, path: Path) -> None:
    """Macro-F1 (mean over folds) over turns a second, for methods with both."""
    points: list[tuple[Entry, Any, Cost]] = [
        (method, quality.figures["macro_f1"], cost)
        for method, quality, cost in rows
        if quality and cost and "macro_f1" in quality.figures
    ]
    with mpl.rc_context({"svg.hashsalt": "rapport", "svg.fonttype": "none", "font.size": 8}):
        picture = Picture(figsize=(7, 4), layout="constrained")
        plot = picture.subplots()
        for number, (method, macro, cost) in enumerate(points):
            own = method.key == "ours"
            plot.scatter(
                cost.turns_a_second,
                100 * macro.mean,
                s=40 if own else 24,
                color=AFTER if own else BEFORE,
                label=f"{number + 1}  {method.words}",
            )
            plot.annotate(
                str(number + 1),
                (cost.turns_a_second, 100 * macro.mean),
                xytext=(4, 4),
                textcoords="offset points",
            )
        plot.set_xscale("log")
        plot.grid(color=GRID, linewidth=0.5)
        plot.set(xlabel="scored turns a second of processor time", ylabel="macro-F1, per cent")
        if points:
            picture.legend(loc="outside right upper", frameon=False, handlelength=0.5, fontsize=7)
        picture.savefig(path, format="svg", metadata={"Date": None})
