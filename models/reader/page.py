"""`python -m models.reader.page`: write the tables of docs/answers.md from the stored figures."""

from __future__ import annotations

import json
from typing import Any

import typer

from models.data.corpora import REPOSITORY
from models.evaluate.tables import with_tables

PAGE = REPOSITORY / "docs" / "answers.md"
FIGURES = REPOSITORY / "docs" / "evaluation" / "reader"
WRITTEN = ("pairs: quartets", "pairs: edits", "pairs: manners_", "pairs: plain", "plain sessions")


def table(columns: dict[str, dict[str, Any]], names: list[str]) -> str:
    """A row a figure, a column a run, and the baselines of the first run that has them."""
    lines = [
        f"| figure | n | {' | '.join(columns)} | words of the answer | length |",
        f"| --- | --- |{' --- |' * (len(columns) + 2)}",
    ]
    for name in names:
        known = [runs[name] for runs in columns.values() if name in runs]
        baselines = known[0].get("baselines", {})
        cells = [_cell(runs.get(name)) for runs in columns.values()]
        bare = [_number(baselines.get(each)) for each in ("words", "length")]
        lines.append(f"| {name} | {known[0]['rows']} | {' | '.join([*cells, *bare])} |")
    return "\n".join(lines)


def _cell(found: dict[str, Any] | None) -> str:
    if found is None:
        return "–"
    interval = f" [{found['low']:.2f}, {found['high']:.2f}]" if "low" in found else ""
    return f"{found['value']:.2f}{interval}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FIGURES / f"{name}.json").read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Write the tables between their markers."""
    base, left_out = _read("mpnet"), _read("mpnet-left-out")
    six, same = _read("minilm-two-folds"), _read("mpnet-two-folds")
    written = [name for name in base if name.startswith(WRITTEN)]
    people = [name for name in base if name not in written]
    tables = {
        "people": table({"held out": base, "corpus left out": left_out}, people),
        "written": table({"voice held out": base}, written),
        "encoders": table({"six layers": six, "base size": same}, [*people, *written]),
    }
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
