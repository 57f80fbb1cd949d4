"""Values of docs/methods/low-resource.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from models.pages.tables import NONE, percent, table
from research.method import Content
from research.results import read

NAME = "low_resource"


def number(figure: dict[str, float] | None) -> str:
    """Mean ± sd with two digits.

    >>> number({"mean": 0.123, "sd": 0.02})
    '0.12 ± 0.02'
    """
    if figure is None:
        return NONE
    return f"{figure['mean']:.2f} ± {figure['sd']:.2f}"


def contrasts(content: Content) -> str:
    """Pairs of corpora by targets."""
    names = [target["name"] for target in content["targets"]]
    header = ["pair", "kind", "own test"]
    for name in names:
        header += [name, f"{name}, no questions", f"{name}, by sentence"]
    rows = []
    for row in content["contrasts"]:
        cells = [
            f"{row['positive']} v {row['negative']} ({row['utterances']})",
            "control" if row["control"] else "contrast",
            number(row["own"]),
        ]
        for name in names:
            own = row["targets"][name]
            cells += [number(own[key]) for key in ("all", "no_questions", "by_sentence")]
        rows.append(cells)
    return table(header, rows, left=2)


def zero_shot(content: Content) -> str:
    """NLI baselines by target."""
    names = list(content["zero_shot"])
    header = ["baseline"]
    for name in names:
        header += [name, f"{name}, no questions"]
    rows = []
    for baseline in content["zero_shot"][names[0]]:
        cells = [baseline]
        for name in names:
            own = content["zero_shot"][name][baseline]
            cells += [f"{own['all']:.2f}", f"{own['no_questions']:.2f}"]
        rows.append(cells)
    return table(header, rows)


def few_shot(content: Content) -> str:
    """Curves by target."""
    curves = content["few_shot"]["curves"]
    header = ["labelled turns"]
    for name in curves:
        header += [f"{name}, from nothing", f"{name}, from the contrast"]
    turns = sorted({row["turns"] for rows in curves.values() for row in rows})
    rows = []
    for count in turns:
        cells = [str(count)]
        for found in curves.values():
            row = next((row for row in found if row["turns"] == count), None)
            alone = None if row is None or count == 0 else row["alone"]
            cells.append(number(alone))
            if row is not None and count == 0:
                cells.append(f"{row['started']['mean']:.2f}")
            else:
                cells.append(number(row["started"] if row else None))
        rows.append(cells)
    return table(header, rows)


def targets(content: Content) -> str:
    """What stands for it, with shares."""
    parts = [
        f"`{t['name']}`: {t['words']}, {t['n']:,} turns, {percent(t['empathic'], 0)} % empathic,"
        f" {percent(t['questions'], 0)} % mainly questions"
        f" (of which {percent(t['empathic_questions'], 0)} % empathic)"
        for t in content["targets"]
    ]
    return "; ".join(parts) + "."


def values(results: Path) -> dict[str, Any] | None:
    """Tables of the three rows; None if one of them was not run."""
    content = read(NAME, results)
    if not {"contrasts", "zero_shot", "few_shot"} <= content.keys():
        return None
    nli = content["nli"]
    known = f"The inference model is {nli['name']}."
    if nli["accuracy"]:
        reached = percent(nli["accuracy"])
        known = f"{known[:-1]}, with an accuracy of {reached} % on SNLI's test pairs."
    return {
        "targets": targets(content),
        "encoder": content["encoder"],
        "items": f"up to {max(row['items'] for row in content['contrasts']):,}",
        "contrasts": contrasts(content),
        "nli": known,
        "zero_shot": zero_shot(content),
        "start": " against ".join(content["few_shot"]["start"]),
        "few_shot": few_shot(content),
    }
