"""Values of docs/methods/instruction-seq2seq.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from models.pages.published import (
    ESCONV_MEAN,
    XU_JIANG_CONTEXT,
    XU_JIANG_INSTRUCTIONS,
    XU_JIANG_LOSSES,
    XU_JIANG_SIZES,
)
from models.pages.tables import spread, table
from research.instruction_seq2seq.instructions import Form, head_of, line_of, tail_of
from research.instruction_seq2seq.tasks import find
from research.method import Content
from research.page import NOT_MEASURED
from research.results import read
from research.second_coder import codebook
from research.second_coder.items import Utterance

NAME = "instruction_seq2seq"
SAMPLE = (
    Utterance("client", "I failed the exam again."),
    Utterance("counsellor", "That must be so disheartening. What happened?"),
)


def example() -> tuple[str, str, str]:
    """An input as text, the name of its task, and its answers."""
    book = codebook.read(codebook.find("epitome"))
    (task,) = find(book, ["emotional_reactions"])
    form = Form()
    lines = ["".join(line_of(turn, target=turn is SAMPLE[-1])) for turn in SAMPLE]
    text = head_of(task, book.setting, form.parts) + "\n".join(lines) + tail_of(task, form.parts)
    return text, task.name, ", ".join(task.verbalisers)


def measured(rows: Content) -> str:
    """Mean figures over the tasks of every row that was run."""
    if not rows:
        return f"{NOT_MEASURED.capitalize()}."
    header = (
        *("model", "codebook", "instruction", "turns before, after", "loss", "folds"),
        *("million parameters", "macro precision", "macro recall", "macro-F1", "accuracy", "MCC"),
    )
    cells = []
    for row in rows.values():
        setting = row["setting"]
        cells.append(
            [
                row["model"],
                row["book"],
                row["instruction"],
                f"{row['before']}, {row['after']}",
                setting["loss"] if setting["epochs"] else "none (zero-shot)",
                ", ".join(map(str, row["folds"])),
                f"{row['parameters'] / 1e6:.1f}",
                *(
                    spread(row["mean"][name])
                    for name in ("precision", "recall", "macro_f1", "accuracy", "mcc")
                ),
            ]
        )
    return table(header, cells, left=6)


def _per_cent(rows: Mapping[str, tuple[float, ...]]) -> list[list[str]]:
    return [[name, *(f"{value:.1f}" for value in values)] for name, values in rows.items()]


PUBLISHED = ("row", "macro precision", "macro recall", "macro-F1", "accuracy")


def esconv() -> str:
    """The instruction-finetuned rows of Table 4 and the best encoders."""
    rows = {name: tuple(figures.values()) for name, figures in ESCONV_MEAN.items()}
    return table(PUBLISHED, _per_cent(rows))


def ablations() -> str:
    """Tables 5 to 8."""
    groups = (XU_JIANG_LOSSES, XU_JIANG_CONTEXT, XU_JIANG_SIZES, XU_JIANG_INSTRUCTIONS)
    return table(PUBLISHED, [row for group in groups for row in _per_cent(group)])


def values(results: Path) -> dict[str, Any]:
    """An example and the tables."""
    text, task, answers = example()
    return {
        "example": text,
        "task": task,
        "answers": answers,
        "measured": measured(read(NAME, results).get("rows", {})),
        "esconv": esconv(),
        "ablations": ablations(),
    }
