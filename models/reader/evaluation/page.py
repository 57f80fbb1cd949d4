"""Write the tables of docs/answers.md and docs/datasheets.

Run as `python -m models.reader.evaluation.page`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from models.data.corpora import REPOSITORY
from models.pages.tables import with_tables

PAGE = REPOSITORY / "docs" / "answers.md"
DATASHEETS = REPOSITORY / "docs" / "datasheets" / "index.md"
FIGURES = REPOSITORY / "docs" / "evaluation" / "reader"
WRITTEN = ("pairs: quartets", "pairs: edits", "pairs: manners_", "pairs: plain", "plain sessions")
STORED = {
    "all folds": ("mpnet", "mpnet-left-out"),
    "two folds": ("minilm-two-folds", "mpnet-two-folds"),
}
"""Files of the reader's figures, by the folds that they are of."""
BASELINES = {
    "words of client and answer": "client and answer",
    "words of the answer": "words",
    "length": "length",
}
TAUGHT = {
    "teacher, 1.5 billion": "qwen-fold-0",
    "base size": "mpnet-fold-0",
    "six layers": "minilm-fold-0",
    "short, taught": "minilm-taught-fold-0",
    "short, not taught": "minilm-untaught-fold-0",
}
"""Files of the figures of one fold, with which a teacher is compared."""
MEASURES = {
    "kappa": "Cohen's κ",
    "alpha": "Krippendorff's α",
    "one against the others": "Spearman, one against the mean of the others",
    "spearman": "Spearman",
    "equal": "same label",
    "auroc": "AUROC of one for the other",
    "share of variance": "share of the variance",
    "cronbach": "Cronbach's α",
}

Figures = dict[str, Any]


def table(columns: dict[str, Figures], words: Figures, names: list[str]) -> str:
    """A row a figure, a column a run, and what words and length reach on the same folds."""
    lines = [
        f"| figure | n | {' | '.join([*columns, *BASELINES])} |",
        f"| --- | --- |{' --- |' * (len(columns) + len(BASELINES))}",
    ]
    for name in names:
        known = [runs[name] for runs in columns.values() if name in runs]
        cells = [_cell(runs.get(name)) for runs in columns.values()]
        bare = [_number(words[name].get(each)) for each in BASELINES.values()]
        lines.append(f"| {name} | {known[0]['rows']} | {' | '.join([*cells, *bare])} |")
    return "\n".join(lines)


def side_by_side(columns: dict[str, Figures]) -> str:
    """A row a figure that each of the runs has, a column a run."""
    first, *others = columns.values()
    lines = [f"| figure | n | {' | '.join(columns)} |", f"| --- | --- |{' --- |' * len(columns)}"]
    for name, found in first.items():
        if all(name in runs for runs in others):
            cells = [_number(runs[name]["value"]) for runs in columns.values()]
            lines.append(f"| {name} | {found['rows']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def agreement(found: Figures) -> str:
    """A row a set of labels, with each of its measures."""
    lines = ["| labels | n | agreement |", "| --- | --- | --- |"]
    for name, figure in found.items():
        values = [
            f"{words} {_cell(value if isinstance(value, dict) else {'value': value})}"
            for key, words in MEASURES.items()
            if (value := figure.get(key)) is not None
        ]
        lines.append(f"| {name} | {figure['rows']} | {'; '.join(values)} |")
    return "\n".join(lines)


def lexicon(words: Figures) -> str:
    """Compare the untrained phrases of the lexicon with words that learned crisis language."""
    lines = ["| figure | n | phrases of the lexicon | words | length |", f"|{' --- |' * 5}"]
    for name, found in words.items():
        if "lexicon" in found:
            values = [_number(found[each]) for each in ("lexicon", "words", "length")]
            lines.append(f"| {name} | {found['rows']} | {' | '.join(values)} |")
    return "\n".join(lines)


def single(reasons: dict[str, str]) -> str:
    """Corpora of which no agreement can be computed, with the reason."""
    return "\n".join(f"- `{name}`: {reason}." for name, reason in reasons.items())


def _cell(found: Figures | None) -> str:
    if found is None:
        return "–"
    interval = f" [{found['low']:.2f}, {found['high']:.2f}]" if "low" in found else ""
    return f"{found['value']:.2f}{interval}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _read(name: str) -> Figures:
    found: Figures = json.loads((FIGURES / f"{name}.json").read_text(encoding="utf-8"))
    return found


def written() -> dict[Path, dict[str, str]]:
    """The tables of each page, by the names of their places."""
    base, left_out = map(_read, STORED["all folds"])
    six, same = map(_read, STORED["two folds"])
    words, ceilings = _read("baselines"), _read("ceilings")
    everything, two = words["all folds"], words["two folds"]
    freely = [name for name in base if name.startswith(WRITTEN)]
    people = [name for name in base if name not in freely]
    answers = {
        "people": table({"held out": base, "corpus left out": left_out}, everything, people),
        "written": table({"voice held out": base}, everything, freely),
        "encoders": table({"six layers": six, "base size": same}, two, [*people, *freely]),
        "teacher": side_by_side({words: _read(file) for words, file in TAUGHT.items()}),
    }
    datasheets = {
        "agreement": agreement(ceilings["agreement"]),
        "single": single(ceilings["one label"]),
        "lexicon": lexicon(everything),
    }
    return {PAGE: answers, DATASHEETS: datasheets}


def main() -> None:
    """Write the tables between their markers."""
    for path, tables in written().items():
        path.write_text(with_tables(path.read_text(encoding="utf-8"), tables), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
