"""Values of docs/methods/transfer.md."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from models.pages.tables import NONE, percent, table
from research.method import Content
from research.results import read
from research.transfer.pairs import verdict
from research.transfer.tasks import BY_NAME, TASKS, Task, Theme

NAME = "transfer"
THEMES: tuple[Theme, ...] = ("direct", "abstract", "adjacent")
SIGNS = {"better": "▲", "worse": "▼", "same": ""}


def registry() -> str:
    """All tasks of the registry."""

    def rating(task: Task) -> str:
        pairs = (task.definition, task.link, task.conduciveness)
        return ", ".join(f"{p[0]}/{p[1]}" for p in pairs if p) or NONE

    return table(
        ("task", "theme", "kind", "publication", "ratings", "here"),
        [
            (t.name, t.theme or NONE, t.kind, t.publisher, rating(t), "yes" if t.loader else "no")
            for t in TASKS
        ],
        left=6,
    )


def scores(content: Content) -> str:
    """Sources by targets."""
    names = [row["name"] for row in content["tasks"]]
    known = {(row["source"], row["target"]): row for row in content["transfers"]}
    rows = [["baseline", *(percent(content["baselines"][name]) for name in names)]]
    for source in names:
        line = [source]
        for target in names:
            row = known.get((source, target))
            mark = SIGNS[verdict(row["score"] - row["base"], row["p"])] if row else ""
            line.append(f"{percent(row['score'])} {mark}".strip() if row else NONE)
        rows.append(line)
    return table(("source", *names), rows)


def counted(content: Content, prefix: str = "") -> Counter[str]:
    """Verdicts over all pairs; `prefix` "half_" for half of the training data."""
    return Counter(
        verdict(row[f"{prefix}score"] - row["base"], row[f"{prefix}p"])
        for row in content["transfers"]
    )


def sentence(counts: Counter[str]) -> str:
    """Counts of verdicts in words."""
    return (
        f"{counts['better']} of {counts.total()} pairs significantly better, "
        f"{counts['worse']} significantly worse"
    )


def themes(content: Content) -> str:
    """Verdicts by theme of source and target."""
    cells: dict[tuple[Theme, Theme], Counter[str]] = {}
    for row in content["transfers"]:
        source, target = BY_NAME[row["source"]].theme, BY_NAME[row["target"]].theme
        if source and target:
            found = verdict(row["score"] - row["base"], row["p"])
            cells.setdefault((source, target), Counter())[found] += 1

    def cell(source: Theme, target: Theme) -> str:
        counts = cells.get((source, target), Counter())
        return f"{counts['better']} ▲, {counts['worse']} ▼ of {counts.total()}"

    rows = [[source, *(cell(source, target) for target in THEMES)] for source in THEMES]
    return table(("source \\ target", *THEMES), rows)


def importance(content: Content) -> tuple[str, str]:
    """What the R² allows to say, and the table of losses."""
    found = content["importance"]
    reached = found["r2"]["mean"]
    words = f"R² over {found['pairs']} pairs: {reached:.2f} ± {found['r2']['sd']:.2f}."
    if reached <= 0:
        words += (
            " The regression predicts no better than the mean, so these importances say nothing;"
            " the paper had 306 pairs."
        )
    ordered = sorted(found["loss"].items(), key=lambda item: -item[1]["mean"])
    rows = [(name, f"{loss['mean']:.3f} ± {loss['sd']:.3f}") for name, loss in ordered]
    return words, table(("feature", "loss in R²"), rows)


INSIDE = """\
The paper's own form: an adapter after each layer's feed-forward block (bottleneck), or low-rank
updates of queries and values (LoRA). The stack has the adapters of two tasks and was trained for
twice as many steps as the baseline, so that a gain is not transfer alone. How much of it the steps
bring would be shown by a stack of the target on itself, which was not measured.

"""


def layers(transfers: list[Content]) -> str:
    """Adapters and LoRA inside the encoder."""
    if not transfers:
        return "Not measured here. The code is tested with a tiny encoder."
    rows = []
    for row in transfers:
        sign = SIGNS[verdict(row["score"] - row["base"], row["p"])]
        scored = f"{percent(row['score'])} {sign}".strip()
        names = (row["kind"], row["source"], row["target"])
        trained = (str(row["train"]), str(row["epochs"]))
        rows.append((*names, *trained, percent(row["base"]), scored))
    columns = ("kind", "source", "target", "items", "epochs", "baseline", "stacked")
    return INSIDE + table(columns, rows, left=3)


def values(results: Path) -> dict[str, Any] | None:
    """Tables and counts; None if the pairs of all tasks were not run."""
    content = read(NAME, results)
    if "tasks" not in content:
        return None
    names = [row["name"] for row in content["tasks"]]
    ours = sum(BY_NAME[name].theme is not None for name in names)
    words, losses = importance(content)
    pairs = len(content["transfers"])
    return {
        "count": len(names),
        "ours": ours,
        "own": len(names) - ours,
        "fold": content["fold"],
        "most": max(row["train"] for row in content["tasks"]),
        "epochs": content["epochs"],
        "pairs": pairs,
        "chance": 0.05 * pairs,
        "scores": scores(content),
        "significant": sentence(counted(content)).capitalize() + ".",
        "half": sentence(counted(content, "half_")),
        "themes": themes(content),
        "verdict_r2": words,
        "importance": losses,
        "layers": layers(content.get("layers", [])),
        "registry": registry(),
    }
