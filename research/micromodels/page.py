"""Values of docs/methods/micromodels.md: seed sizes, importances and an explained prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from models.labels import RATIONALE_ORDER
from models.pages.tables import NONE, percent, spread, table
from research.method import Content
from research.micromodels.seed_sizes import CHOICES, SIZES
from research.page import SHORT
from research.results import read

NAME = "micromodel_seeds"
WORDS = {
    "published": "most triggered in the test part",
    "training": "most triggered in the training part",
    "random": "random",
}


def few(rows: Content) -> str:
    """IOU-F1 by number of seeds."""
    header = ["mechanism", "seeds kept", "all", *map(str, SIZES)]
    cells = []
    for head in RATIONALE_ORDER:
        for choice in CHOICES:
            found = [spread(rows[head][choice].get(str(size), {}).get("iou_f1")) for size in SIZES]
            cells.append([SHORT[head], WORDS[choice], spread(rows[head]["all"]["iou_f1"]), *found])
    return (
        "Rationales by number of seeds: IOU-F1 over all responses, per cent, mean ± standard"
        f" deviation over folds.\n\n{table(header, cells, left=2)}"
    )


def gold(rows: Content) -> str:
    """IOU-F1 with a gold rationale, and how often one is found, by number of seeds."""
    header = ["mechanism", "figure", "all", *map(str, SIZES)]
    cells = []
    for head in RATIONALE_ORDER:
        for name, words in (("iou_f1_gold", "IOU-F1, gold"), ("found", "found")):
            own = rows[head]["published"]
            found = [spread(own.get(str(size), {}).get(name)) for size in SIZES]
            cells.append([SHORT[head], words, spread(rows[head]["all"][name]), *found])
    return table(header, cells, left=2)


def kept(rows: Content, folds: list[int]) -> str:
    """Words in the seeds that the training part triggers most, by fold."""
    header = ["mechanism", *(f"fold {number}" for number in folds)]
    cells = [
        [SHORT[head], *(", ".join(map(str, each)) or NONE for each in rows[head]["kept_words"])]
        for head in RATIONALE_ORDER
    ]
    return table(header, cells)


def importances(found: Content) -> str:
    """Contributions by mechanism and micromodel."""
    cells = [
        [SHORT[head], *(f"{found[head][name]:.2f}" for name in RATIONALE_ORDER)]
        for head in RATIONALE_ORDER
    ]
    return table(["levels of", *(SHORT[name] for name in RATIONALE_ORDER)], cells)


def values(results: Path) -> dict[str, Any] | None:
    """Tables and the example; None if nothing was measured."""
    content = read(NAME, results)
    if not content:
        return None
    rows = content["rows"]
    return {
        "few": few(rows),
        "gold": gold(rows),
        "thetas": ", ".join(
            f"{SHORT[head]} {min(rows[head]['theta']):.2f} to {max(rows[head]['theta']):.2f}"
            for head in RATIONALE_ORDER
        ),
        "empty": ", ".join(
            f"{SHORT[head]} {percent(content['empty'][head])}" for head in RATIONALE_ORDER
        ),
        "fold": content["folds"][0],
        "kept": kept(rows, content["folds"]),
        "example": content["example"],
        "importances": importances(content["importances"]),
    }
