"""Agreement as a Markdown table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from models.pages.tables import NONE, table

WORDS: Final = {"expert": "expert", "llm": "LLM", "rapport": "Rapport"}
FIGURES: Final = ("kappa", "linear", "quadratic", "alpha")
HEADER: Final = (
    *("variable", "coders", "pairs", "sessions", "items", "equal, %"),
    *("κ", "κ linear", "κ quadratic", "α"),
)


def agreement_table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Comparisons as written by `Comparison.as_json`, one a row."""
    return table(HEADER, [_row(row) for row in rows], left=2)


def _row(row: Mapping[str, Any]) -> list[str]:
    first, second = row["kinds"]
    counts = [f"{row[name]:,}" for name in ("pairs", "sessions", "items")]
    head = [row["variable"], f"{WORDS[first]}–{WORDS[second]}", *counts]
    if row["problem"] is not None:
        return [*head, row["problem"], *[NONE] * len(FIGURES)]
    return [*head, _cell(row["equal"], 100, 0), *(_cell(row[name]) for name in FIGURES)]


def _cell(figure: Mapping[str, float | None] | None, unit: float = 1, digits: int = 2) -> str:
    if figure is None or figure["value"] is None:
        return NONE
    value = f"{unit * figure['value']:.{digits}f}"
    if figure["low"] is None or figure["high"] is None:
        return value
    return f"{value} ({unit * figure['low']:.{digits}f} to {unit * figure['high']:.{digits}f})"
