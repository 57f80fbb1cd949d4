"""`python -m research.compare`: one table of all methods on the same folds.

Measures speed and memory of all that can be loaded on this machine, prints the table, and writes
docs/methods/comparison.md with its picture. Costs are kept in research/results/cost.json, for
tables without a new measurement (`--no-cost`).
"""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Annotated, Any

import typer

from models.pages.document import FOLDER as EVALUATION
from models.pages.report import rounded
from models.pages.tables import table
from research.compare import page
from research.compare.cost import ROUNDS, TURNS, Cost, measure
from research.compare.entries import entries
from research.compare.figures import read
from research.method import PAGES, RESULTS
from research.page import render
from research.results import write


def known_costs(path: Path) -> dict[str, Any]:
    """The stored measurement; empty if there is none."""
    empty: dict[str, Any] = {"machine": "", "rounds": ROUNDS, "turns": TURNS, "costs": {}}
    if not path.is_file():
        return empty
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def processor() -> str:
    """The processor's name and the number of cores, for the page."""
    names = (
        [
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ]
        if Path("/proc/cpuinfo").is_file()
        else []
    )
    return f"{names[0]}, {len(names)} cores" if names else platform.machine()


def main(
    cost: Annotated[bool, typer.Option(help="Measure speed and memory.")] = True,
    only: Annotated[list[str] | None, typer.Option(help="Measure the cost of these rows.")] = None,
    rounds: int = ROUNDS,
    turns: Annotated[int, typer.Option(help="Scored turns of each method in a round.")] = TURNS,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    results: Annotated[Path, typer.Option(help="Folder of the result files.")] = RESULTS,
    evaluation: Annotated[Path, typer.Option(help="Folder of the evaluation.")] = EVALUATION,
    pages: Annotated[Path, typer.Option(help="Folder of the page.")] = PAGES,
) -> None:
    """Compare all methods: quality, parameters, speed and memory."""
    rows = entries()
    if unknown := set(only or ()) - {entry.key for entry in rows}:
        raise SystemExit(f"error: no method {', '.join(sorted(unknown))}")
    stored = known_costs(results / "cost.json")
    if cost:
        chosen = [entry for entry in rows if not only or entry.key in only]
        found = measure(chosen, data_dir, rounds, turns)
        stored = rounded(
            {
                "machine": processor(),
                "rounds": rounds,
                "turns": turns,
                "costs": {k: {"rounds": c.rounds, "memory": c.memory} for k, c in found.items()},
            },
            1,
        )
        write("cost", stored, results)
    costs = {key: Cost(row["rounds"], row["memory"]) for key, row in stored["costs"].items()}
    lines = [
        (
            entry,
            read(entry, results, evaluation),
            costs.get(entry.key) or costs.get(entry.cost_of or ""),
        )
        for entry in rows
    ]
    written = render(page.NAME, page.values(lines, stored), pages)
    page.draw(lines, pages / page.PICTURE)
    print(table(page.HEADER, [page.cells(*line) for line in lines], left=3))
    print(written)


if __name__ == "__main__":
    typer.run(main)
