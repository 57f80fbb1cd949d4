"""Tables of the files that other commands write: perceived, probes."""

from __future__ import annotations

from typing import Any

from models.evaluate.tables import NONE, table
from models.probes.report import markdown as probe_markdown

Content = dict[str, Any]


def _pooled(figure: Content, digits: int = 2) -> str:
    """Value and interval."""
    value, low, high = (figure.get(key) for key in ("value", "low", "high"))
    if value is None or value != value:  # noqa: PLR0124 (NaN)
        return NONE
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _spread(figure: Content) -> str:
    mean, sd = figure.get("mean"), figure.get("sd")
    if mean is None:
        return NONE
    return f"{mean:.2f}" if sd is None else f"{mean:.2f} ± {sd:.2f}"


def _folds(content: Content) -> str:
    numbers = content["folds"]
    return f"{len(numbers)} folds (number {', '.join(map(str, numbers))})."


def perceived(content: Content) -> str:
    """What each head learned from, and its rank correlation with held-out ratings."""
    learned = table(["head", "learned from"], content["learned_from"].items(), left=2)
    rows = [
        [
            *(row["head"], row["rating"], "yes" if row["own"] else "no", row["view"]),
            *(str(row["sessions"]), str(row["n"]), _pooled(row["spearman"]), _spread(row)),
        ]
        for row in content["correlations"]
    ]
    header = [
        *("head", "rating", "learns from it", "view", "sessions", "ratings"),
        *("Spearman, pooled (95 %)", "over folds"),
    ]
    views = "; ".join(f"{name}: {words}" for name, words in content["views"].items())
    parts = [
        _folds(content) + " Turn outputs are learned from what listeners said of stretches of a "
        f"conversation (multiple-instance learning). {_sentence(content['protocol'])} {views}.",
        learned,
        table(header, rows, left=4),
    ]
    if content.get("poolings"):
        pooled = [
            [row["head"], row["rating"], row["pooling"], _pooled(row["spearman"])]
            for row in content["poolings"]
        ]
        names = ["head", "rating", "pooling", "Spearman, pooled (95 %)"]
        parts += ["By how turns are pooled:", table(names, pooled, left=3)]
    return "\n\n".join(parts)


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:].rstrip(".") + "."


def probes(content: Content) -> str:
    """Share of probes called empathic, by scorer."""
    size = content["probe"]["size"]
    words = f"{size} cases for each condition and mechanism; per cent with 95 % intervals."
    return f"{words}\n\n{probe_markdown(content)}"
