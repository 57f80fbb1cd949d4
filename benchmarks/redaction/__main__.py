"""``python -m benchmarks.redaction``: print precision and recall, regenerate docs/redaction.md."""

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.redaction import scores, sentences
from benchmarks.report import markdown
from models.data import load_for_command
from stream_app.redaction.mask import redact
from stream_app.redaction.port import Redactor
from stream_app.redaction.presidio import open_presidio
from stream_app.redaction.rules import Rules
from stream_app.redaction.spans import Kind

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "redaction.md"
TURNS: Final = 20_000
FRAMES: Final = ("This is {}.", "I'm {}.", "I’m so {}", "I feel {} today", "I am {}, and alone")
"""Sentences in which a capitalised feeling must stay."""
FEELINGS: Final = Path(__file__).with_name("feelings.txt").read_text(encoding="utf-8").split()


def main() -> None:
    """Measure; with ``--write`` replace the tables of the document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redaction")
    parser.add_argument("--redactor", choices=("rules", "presidio"), default="rules")
    parser.add_argument("--presidio-config", type=Path)
    parser.add_argument("--corpora", action="store_true", help="measure on turns of the corpora")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--write", action="store_true", help=f"write the tables of {DOCUMENT.name}")
    given = parser.parse_args()
    redactor: Redactor = (
        open_presidio(given.presidio_config) if given.redactor == "presidio" else Rules()
    )
    parts = {
        "goals": goals(redactor),
        "classes": classes(redactor),
        "feelings": feelings(redactor),
    }
    if given.corpora:
        texts = [turn.text for talk in load_for_command(given.data_dir) for turn in talk.turns][
            :TURNS
        ]
        parts["turns"] = turns(texts, redactor)
    for part in parts.values():
        print(part, end="\n\n")
    if given.write:
        document = DOCUMENT.read_text(encoding="utf-8")
        for name, part in parts.items():
            document = markdown.replace(document, name, part)
        DOCUMENT.write_text(document, encoding="utf-8")


def goals(redactor: Redactor) -> str:
    """Recall and over-masking by kind, in the first sentences and in the new ones."""
    listed = sentences.read()
    sets = {name: scores.of_set(listed, name) for name in scores.SETS}
    by_set = {name: scores.score(some, redactor) for name, some in sets.items()}
    rows = [
        _goal_row(kind.value.replace("_", " "), f"≥ {scores.goal_of(kind):.2f}", found)
        for kind in Kind
        for found in [[of_kind[kind] for of_kind in by_set.values()]]
    ]
    for name, least, names in (
        ("all with a form", scores.GOAL, False),
        ("all names", scores.NAMES_GOAL, True),
    ):
        found = [scores.group(of_kind.items(), names=names) for of_kind in by_set.values()]
        rows.append(_goal_row(name, f"≥ {least:.2f}", found))
    masked = ["sentences without a detail"]
    for some in sets.values():
        plain, wrong = scores.over_masked(some, redactor)
        masked += [str(plain), "–", f"{wrong} ({wrong / plain:.1%})"]
    rows.append([*masked, f"≤ {scores.MOST_MASKED:.0%}"])
    head = ["kind"]
    for name in sets:
        head += [f"{name}: number", "recall", "masked too much"]
    return markdown.table([*head, "goal"], rows)


def _goal_row(name: str, goal: str, found: Sequence[scores.Score]) -> list[str]:
    cells = [name]
    for one in found:
        recall = f"{one.recall:.2f}" if one.marked else "–"
        cells += [str(one.marked), recall, str(one.found - one.right)]
    return [*cells, goal]


def classes(redactor: Redactor) -> str:
    """Precision and recall by kind and split."""
    listed = sentences.read()
    by_split = {
        split: scores.score((one for one in listed if one.split == split), redactor)
        for split in sentences.SPLITS
    }
    rows = []
    for kind in Kind:
        cells = [kind.value.replace("_", " ")]
        for split in sentences.SPLITS:
            one = by_split[split][kind]
            cells += [str(one.marked), f"{one.recall:.2f}", f"{one.precision:.2f}"]
        rows.append(cells)
    head = ["class"]
    for split in sentences.SPLITS:
        name = split.replace("_", "-")
        head += [f"{name}: details", "recall", "precision"]
    return markdown.table(head, rows)


def feelings(redactor: Redactor) -> str:
    """Masked words among feelings with a capital letter, and in the negative sentences."""
    said = [frame.format(word.capitalize()) for word in FEELINGS for frame in FRAMES]
    masked = sum(redact(text, redactor) != text for text in said)
    negative = [one for one in sentences.read() if one.negative]
    wrong = sum(bool(scores.wrong(one, redactor)) for one in negative)
    return markdown.table(
        ["sentences without a detail", "number", "with a mask", "share"],
        [
            ["a capitalised feeling in five frames", str(len(said)), *_share(masked, len(said))],
            ["hard negatives of the set", str(len(negative)), *_share(wrong, len(negative))],
        ],
    )


def turns(texts: Sequence[str], redactor: Redactor) -> str:
    """Masked words and the time of a turn in the corpora."""
    words, capitals, hidden = scores.masked_words(texts, redactor)
    took = []
    for text in texts:
        start = time.perf_counter()
        redact(text, redactor)
        took.append(time.perf_counter() - start)
    took.sort()
    return markdown.table(
        ["turns of the corpora", "value"],
        [
            ["turns", str(len(texts))],
            ["words", str(words)],
            ["capitalised words", str(capitals)],
            ["of them masked", f"{hidden.total()} ({hidden.total() / capitals:.2%})"],
            ["median time of a turn", f"{statistics.median(took) * 1e6:.0f} µs"],
            ["99th percentile", f"{took[len(took) * 99 // 100] * 1e6:.0f} µs"],
        ],
    )


def _share(part: int, whole: int) -> tuple[str, str]:
    return str(part), f"{part / whole:.1%}"


if __name__ == "__main__":
    main()
