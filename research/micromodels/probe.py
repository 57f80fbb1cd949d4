"""`python -m research.micromodels.probe`: the context probe on micromodels.

Adds their entry to docs/evaluation/probes.json, beside those of `python -m models.probes`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from models.data import epitome
from models.data.corpora import MissingCorpusError, resolve_data_dir
from models.data.split import split
from models.probes import report
from models.probes.cases import cases
from research.micromodels.scorer import fit_levels

SEED = 17


def main(
    out: Annotated[Path, typer.Option(help="File with the entries of all scorers.")] = Path(
        "docs/evaluation/probes.json"
    ),
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    size: Annotated[int, typer.Option(help="Cases per condition and mechanism.")] = 1000,
) -> None:
    """Fit micromodels on the training part and run the context probe on them."""
    try:
        folder = resolve_data_dir(data_dir)
        parts = split(list(epitome.load(folder)), SEED)
        given = cases(folder, parts["test"], size, SEED)
    except MissingCorpusError as problem:
        raise SystemExit(f"error: {problem}") from problem
    entry = report.measure(fit_levels(parts["train"]), given)
    entry["heldout"] = "test part"
    content = report.store(out, "micromodels", entry, {"size": size, "seed": SEED})
    print(report.markdown(content))
    print(f"\nmicromodels, phrase by phrase:\n\n{report.phrases_markdown(entry)}")


if __name__ == "__main__":
    typer.run(main)
