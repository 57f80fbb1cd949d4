"""`python -m models.adaptation`: how many ratings until an adaptation pays (docs/adaptation.md).

Simulated raters judge real chats that a shipped bundle has scored. They differ from the bundle by a
known rule (`models.adaptation.raters`). `--write` puts the tables into docs/adaptation.md.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from models.adaptation import figures, learning_curve
from models.adaptation.learning_curve import SIZES, Run
from models.adaptation.platform import score
from models.adaptation.raters import HEAD, RATERS
from models.data.corpora import REPOSITORY, resolve_data_dir
from models.evaluate.tables import with_tables
from stream_app.inference.bundle import DEFAULT_BUNDLE

ORDER = sorted(SIZES, key=lambda size: (size < 64, size not in (64, 128, 256, 512), size))
"""The numbers of ratings around which adapting begins to pay come first."""
PAGE = REPOSITORY / "docs" / "adaptation.md"


def main(
    bundle: Annotated[Path, typer.Option(help="Folder of the bundle.")] = DEFAULT_BUNDLE,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[
        Path, typer.Option(help="File of the runs; those that it has are not repeated.")
    ] = Path("build/adaptation.jsonl"),
    write: Annotated[bool, typer.Option(help=f"Put the tables into docs/{PAGE.name}.")] = False,
) -> None:
    """Simulate platforms, print how many ratings they need, and keep every run in a file."""
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = out.read_text(encoding="utf-8").splitlines() if out.is_file() else []
    runs = [Run(**json.loads(line)) for line in lines]
    done = {(run.raters, run.ratings) for run in runs}
    todo = [(raters, size) for size in ORDER for raters in RATERS if (raters, size) not in done]
    platform = score(bundle, resolve_data_dir(data_dir), HEAD) if todo else None
    for raters, size in todo if platform is not None else ():
        found = list(learning_curve.runs(platform, raters, size, learning_curve.repeats(size)))
        with out.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(run)) + "\n" for run in found)
        runs += found
        promoted = sum(run.promoted for run in found)
        print(f"{raters}, {size} ratings: {promoted} of {len(found)} promoted", flush=True)
    tables = figures.tables(runs)
    print(*tables.values(), sep="\n\n")
    if write:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
