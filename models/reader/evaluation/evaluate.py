"""Figures of the reader on what was held out of its training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from models.data.corpora import resolve_data_dir
from models.evaluate.resampling import interval
from models.reader import corpora, written
from models.reader.examples import Example
from models.reader.model import OUTPUTS
from models.reader.tasks import Floats, Task, tasks_of
from models.reader.train import voiced

Figure = dict[str, Any]


def gathered(examples: Sequence[Example], folders: Sequence[Path]) -> dict[str, Floats]:
    """Logits by head, NaN where no run held an example out; the first run that did counts."""
    width = sum(OUTPUTS.values())
    logits = np.full((len(examples), width), np.nan)
    for folder in folders:
        with np.load(folder / "predictions.npz") as found:
            places, values = found["places"], found["logits"].astype(np.float64)
        new = np.isnan(logits[places, 0])
        logits[places[new]] = values[new]
    parts = np.split(logits, np.cumsum(list(OUTPUTS.values()))[:-1], axis=1)
    return dict(zip(OUTPUTS, parts, strict=True))


def figures(examples: Sequence[Example], heads: dict[str, Floats]) -> dict[str, Figure]:
    """Every figure for which held-out logits exist."""
    known = ~np.isnan(heads["answer"][:, 0])
    return {task.name: _measured(task, examples, heads) for task in tasks_of(examples, known)}


def _measured(task: Task, examples: Sequence[Example], heads: dict[str, Floats]) -> Figure:
    """The statistic with its interval; of written pairs also that of each voice."""
    score = task.score_of(heads)
    everything = np.arange(len(task.units))
    if task.groups is None:
        found: Figure = {"value": task.statistic(everything, score)}
    else:
        found = interval(task.groups, lambda rows: task.statistic(rows, score))
    found["rows"] = task.rows
    if task.kind == "pairs" and task.head == "answer":
        lapse = replace(task, head="lapse", sign=-1.0).score_of(heads)
        found["lapse"] = task.statistic(everything, lapse)
        voices = np.array([examples[unit[0]].key for unit in task.units])
        if voiced(examples[task.units[0][0]].corpus):
            found["voices"] = {
                voice: round(task.statistic(everything[voices == voice], score), 3)
                for voice in sorted(set(voices))
            }
    return found


def main(
    runs: Annotated[list[Path], typer.Argument(help="Folders with predictions.npz.")],
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    contrast: Annotated[Path, typer.Option(help="Folder of the voices.")] = written.CONTRAST,
    out: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
) -> None:
    """Print the figures of the runs together."""
    folder = resolve_data_dir(data_dir)
    examples = [*corpora.load(folder), *written.load(folder, contrast)]
    found = figures(examples, gathered(examples, runs))
    for name, each in found.items():
        limits = f"[{each['low']:.3f}, {each['high']:.3f}]" if "low" in each else ""
        print(f"{name:40} {each['value']:.3f} {limits} n {each['rows']}")
    if out is not None:
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
