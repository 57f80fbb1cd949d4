"""`python -m models.evaluate --model build/model`: held-out metrics as a table and as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import torch
import typer

from models import multitask
from models.batches import ALONE, FINAL, PROVISIONAL, tokenise
from models.calibrate import Calibration
from models.data import load_for_command
from models.data.split import split
from models.evaluate.predict import predict
from models.evaluate.report import markdown, measure

VIEWS = {
    "final": ("turns before and after", FINAL),
    "provisional": ("turns before", PROVISIONAL),
    "alone": ("no context", ALONE),
}


def main(
    model: Annotated[Path, typer.Option(help="A trained model's folder.")] = Path("build/model"),
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    part: Annotated[str, typer.Option(help="train, validation or test")] = "test",
    threads: int = 2,
) -> None:
    """Measure a model on a held-out part and write metrics.json and metrics.md beside it."""
    torch.set_num_threads(threads)
    trained, tokenizer = multitask.load(model)
    seed = json.loads((model / "training.json").read_text(encoding="utf-8"))["seed"]
    parts = split(load_for_command(data_dir), seed)
    segments = tokenise(dict(parts)[part], tokenizer)
    calibration = Calibration.read(model / "calibration.json")
    reports, pages = {}, [f"# Metrics on the {part} part (per cent)"]
    for view, (words, window) in VIEWS.items():
        reports[view] = measure(predict(trained, segments, window), calibration)
        pages.append(f"## {view.capitalize()}: {words}\n\n{markdown(reports[view])}")
    page = "\n\n".join(pages) + "\n"
    (model / "metrics.json").write_text(json.dumps(reports, indent=1) + "\n", encoding="utf-8")
    (model / "metrics.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    typer.run(main)
