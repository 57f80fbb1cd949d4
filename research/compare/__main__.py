"""`python -m research.compare`: one table of all methods on the same folds.

Runs the methods without a result file that take minutes on one core, measures speed and memory of
all that can be loaded on this machine, prints the table, and writes docs/methods/comparison.md with
its picture. Costs are kept in research/results/cost.json, for tables without a new measurement
(`--no-cost`).
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from models.pages.document import FOLDER as EVALUATION
from models.pages.document import write_json
from models.pages.report import rounded
from models.pages.tables import table
from research.compare import page
from research.compare.cost import ROUNDS, TURNS, Cost, measure
from research.compare.figures import read
from research.compare.methods import Method, methods
from research.folds import FOLDS, SEED
from research.results import FOLDER


def run_missing(chosen: list[Method], results: Path, data_dir: Path | None) -> None:
    """Run the quick commands whose result file is missing."""
    done: set[str] = set()
    for method in chosen:
        if (
            not method.quick
            or method.source in done
            or (results / f"{method.source}.json").is_file()
        ):
            continue
        done.add(method.source)
        _, *arguments = method.command.split()
        given = [f"--out={results}", *([f"--data-dir={data_dir}"] if data_dir else [])]
        print(f"running {method.command}", flush=True)
        subprocess.run([sys.executable, *arguments, *given], check=True)  # noqa: S603 (own commands)


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
    results: Annotated[Path, typer.Option(help="Folder of the result files.")] = FOLDER,
    evaluation: Annotated[Path, typer.Option(help="Folder of the evaluation.")] = EVALUATION,
    out: Annotated[Path, typer.Option(help="Page to write.")] = page.PAGE,
) -> None:
    """Compare all methods: quality, parameters, speed and memory."""
    rows = methods()
    if unknown := set(only or ()) - {method.key for method in rows}:
        raise SystemExit(f"error: no method {', '.join(sorted(unknown))}")
    run_missing(rows, results, data_dir)
    path = results / "cost.json"
    stored = known_costs(path)
    if cost:
        chosen = [method for method in rows if not only or method.key in only]
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
        results.mkdir(parents=True, exist_ok=True)
        write_json(path, stored)
    costs = {key: Cost(row["rounds"], row["memory"]) for key, row in stored["costs"].items()}
    lines = [
        (
            method,
            read(method, results, evaluation),
            costs.get(method.key) or costs.get(method.cost_of or ""),
        )
        for method in rows
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    page.draw(lines, out.with_name(page.PICTURE))
    text = page.page(
        lines,
        stored["machine"],
        rounds=stored["rounds"],
        turns=stored["turns"],
        of=FOLDS,
        seed=SEED,
    )
    out.write_text(text, encoding="utf-8")
    print(table(page.HEADER, [page.cells(*line) for line in lines], left=3))
    print(out)


if __name__ == "__main__":
    typer.run(main)
