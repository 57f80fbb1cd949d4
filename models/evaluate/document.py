"""Writes docs/evaluation.md from the JSON in docs/evaluation/: no figure in it is typed by hand.

`python -m models.evaluate.document` needs neither models nor corpora. Files that other commands
write are taken as they are found; a missing one is said to be missing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from scipy.stats import t as student

from models.calibrate import LARGEST_ABSTENTION, RIGHT_SHARE
from models.data.corpora import REPOSITORY
from models.evaluate import choices, sections, tables
from models.evaluate.beside import beside
from models.evaluate.low_empathy import low_empathy_section
from models.evaluate.miti import miti_section
from models.evaluate.outcomes import outcomes_section
from models.evaluate.published import TARGETS, Target

FOLDER = REPOSITORY / "docs" / "evaluation"
NOT_YET = "Not measured yet: `{command}` writes `docs/evaluation/{name}.json`."
COMMANDS = {
    "construct": "python -m models.construct evaluate",
    "baselines": "python -m models.evaluate.baselines",
    "micromodels": "python -m models.methods.micromodels",
    "levels": "python -m models.evaluate",
    "rationales": "python -m models.evaluate",
    "strategies": "python -m models.evaluate",
    "annomi": "python -m models.evaluate",
    "intents": "python -m models.evaluate",
    "ratings": "python -m models.evaluate",
    "calibration": "python -m models.evaluate",
    "perceived": "python -m models.outcomes ratings",
    "outcomes": "python -m models.outcomes evaluate",
    "multitrait": "python -m models.multitrait",
    "miti": "python -m models.miti --bundle stream_app/bundles/default",
    "probes": "python -m models.probes",
    "nano": "python -m models.distil compare",
    "ablation": "python -m models.ablation",
}

Content = dict[str, Any]
Make = Callable[[Any, Content], str]
"""Writes a section from its own file and, where it needs them, from all files by name."""

CHOICES_TITLE = "Hyper-parameters chosen on the evaluated folds"
HEAD = """\
# Evaluation

Written by `python -m models.evaluate.document` from the files in [evaluation/](evaluation/); do not
edit it by hand. Figures are in per cent unless something else is said. Folds hold whole
conversations, or all responses to one seeker post. What is fitted after training (temperatures,
thresholds, offsets) is fitted for each fold on the predictions of the other folds' models; what was
chosen with these folds in view is
[listed at the end]({choices}).

± is the standard deviation over folds, not an interval, and published figures come from other
splits of other sizes. No row beside another says that one method is better: only a difference with
an interval says that, and where there is one it is given."""


def write_json(path: Path, content: object) -> None:
    """Write one of the evaluation's files."""
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def read_all(folder: Path) -> dict[str, Any]:
    """The evaluation's files that exist, by name."""
    return {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name in COMMANDS
        if (path := folder / f"{name}.json").is_file()
    }


def write(folder: Path = FOLDER) -> Path:
    """Write `evaluation.md` beside the folder and return its path."""
    path = folder.with_suffix(".md")
    path.write_text(page(read_all(folder), folder), encoding="utf-8")
    return path


def page(files: dict[str, Any], folder: Path) -> str:
    """The document as Markdown."""
    head = HEAD.format(choices="#" + CHOICES_TITLE.lower().replace(" ", "-"))
    parts = [head, "## Targets\n\n" + targets(files) + "\n\n" + TARGET_NOTES]
    for title, name, make in SECTIONS:
        body = section(files, name, make)
        shown = [
            f"![{words}]({folder.name}/{picture})"
            for picture, words in PICTURES.get(name, {}).items()
            if (folder / picture).is_file()
        ]
        parts.append("\n\n".join([f"## {title}", body, *shown]))
    parts.append(f"## {CHOICES_TITLE}\n\n{choices.markdown()}")
    return "\n\n".join(parts) + "\n"


def section(files: dict[str, Any], name: str, make: Make | None = None) -> str:
    """The tables of one file, or that it is missing."""
    if not files.get(name):
        return NOT_YET.format(command=COMMANDS[name], name=name)
    make = make or next(own for _, known, own in SECTIONS if known == name)
    return make(files[name], files)


TARGET_NOTES = """\
The interval is at 95 %: Student's over the folds where a figure is a mean of folds (five folds, so
it is rough), else the one that the figure's own table states. "Uncertain" marks a figure whose
interval holds the target: it is not shown to be on either side. A target is this project's own, set
before training; that a figure reaches it says nothing about the published figures beside it."""


def targets(files: dict[str, Any]) -> str:
    """What was set before training, what is published, and what came out."""
    rows = []
    for target in TARGETS:
        sign = "≤" if target.most else "≥"
        digits = 1 if target.unit == 100 else 2
        wanted = tables.NONE
        if target.wanted is not None:
            wanted = f"{sign} {target.wanted:.{digits}f}".replace(".0", "")
        found = lookup(files, target)
        if found is None:
            shown, reached = ["not measured yet", tables.NONE], tables.NONE
        else:
            value, limits = found * target.unit, interval_of(files, target)
            span = tables.NONE
            if limits is not None:
                limits = limits[0] * target.unit, limits[1] * target.unit
                span = f"{limits[0]:.{digits}f} to {limits[1]:.{digits}f}"
            shown, reached = [f"{value:.{digits}f}", span], verdict(target, value, limits)
        rows.append([target.what, wanted, target.published, *shown, reached])
    header = ["figure", "target", "published", "ours", "95 % interval", "reached"]
    return tables.table(header, rows)


def verdict(target: Target, value: float, limits: tuple[float, float] | None) -> str:
    """Whether the figure reaches its target, and whether its interval leaves that open."""
    if target.wanted is None:
        return tables.NONE
    reached = value <= target.wanted if target.most else value >= target.wanted
    unsure = limits is not None and limits[0] <= target.wanted <= limits[1]
    return ("yes" if reached else "**no**") + (", uncertain" if unsure else "")


def interval_of(files: dict[str, Any], target: Target) -> tuple[float, float] | None:
    """The 95 % interval of a target's figure; None where there is none."""
    row: Any = files
    for key in target.path[:-1]:
        row = row.get(key) if isinstance(row, dict) else None
    match row:
        case {"low": float() as low, "high": float() as high}:
            return low, high
        case {"interval": [float() as low, float() as high]}:
            return low, high
        case {"mean": float() as mean, "sd": float() as spread, "folds": list() as folds}:
            if len(folds) > 1:
                half = student.ppf(0.975, len(folds) - 1) * spread / math.sqrt(len(folds))
                return float(mean - half), float(mean + half)
    return None


def lookup(files: dict[str, Any], target: Target) -> float | None:
    """The figure that a target's path leads to; None where there is none."""
    value: Any = files
    for key in target.path:
        value = value.get(key) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) else None


def _own(make: Make, notes: str) -> Make:
    def section(content: Content, files: Content) -> str:
        return "\n\n".join([tables.folds_line(content), make(content, files), notes])

    return section


def _alone(make: Callable[[Any], str]) -> Make:
    """A section that needs no other file."""
    return lambda content, _: make(content)


def _others(make: Callable[[Content], str]) -> Make:
    """A section from a file that another command writes: whatever its shape, it is shown."""

    def section(content: Content, _: Content) -> str:
        try:
            return make(content)
        except (KeyError, TypeError, ValueError, AttributeError):
            return anything(content)

    return section


def _low_empathy(content: Content, files: Content) -> str:
    return _others(lambda own: low_empathy_section(own, files.get("outcomes")))(content, files)


def _levels(content: Content, files: Content) -> str:
    pairs = content["views"]["final"]["shipped"]["emotional_reactions"]["n"]
    notes = tables.LEVEL_NOTES.format(pairs=pairs)
    weak = tables.weak_interpretations(content, files)
    return _own(tables.levels, f"{weak}\n\n{notes}")(content, files)


def _strategies(content: Content, files: Content) -> str:
    turns = content["views"]["final"]["classes"]["shipped"]["n"]
    return _own(tables.strategies, tables.STRATEGY_NOTES.format(turns=turns))(content, files)


def _ratings(content: Content, files: Content) -> str:
    """Rated empathy: the baselines are known before any model learns the head."""
    return sections.ratings(content, files.get("ratings", {}).get("views", {}))


def _calibration(content: Content) -> str:
    notes = tables.CALIBRATION_NOTES.format(
        bins=content["bins"],
        right=round(100 * RIGHT_SHARE),
        most=round(100 * LARGEST_ABSTENTION),
    )
    return "\n\n".join(
        [
            tables.folds_line(content),
            tables.calibration(content),
            notes,
            tables.coverage(content),
        ]
    )


RECIPE = "recipe"
SMALL = (
    "Such small trainings compare levers with each other; they are far from the shipped model, and "
    "what changes so short a training (fewer tasks, no contrast) need not change the whole one."
)
ONE_RUN = "One training a row: there is no interval, and no row is shown to be better than another."


def ablation(rows: Any) -> str:
    """The levers that were kept, beside the recipe without them."""
    return _levers(rows, kept=True)


def failures(rows: Any) -> str:
    """The levers that were tried and are not in the recipe."""
    return _levers(rows, kept=False)


def _levers(content: Any, *, kept: bool) -> str:
    every = content if isinstance(content, list) else content.get("rows", [])
    rows = [row for row in every if bool(row.get("kept", True)) is kept]
    if not rows:
        return "Nothing so far."
    if not kept:
        rows = [row for row in every if row["lever"] == RECIPE] + rows
    by_setting: dict[str, list[Any]] = {}
    for row in rows:
        by_setting.setdefault(_setting(row["setting"]), []).append(row)
    parts = [
        f"{words}\n\n{_lever_table(some)}"
        for words, some in by_setting.items()
        if any(row["lever"] != RECIPE for row in some)
    ]
    return "\n\n".join([ONE_RUN, *parts])


def _lever_table(rows: list[Any]) -> str:
    names = list(dict.fromkeys(key for row in rows for key in row.get("figures", {})))
    cells = [
        [
            str(row["lever"]),
            str(row.get("description", "")),
            *(_figure(row.get("figures", {}).get(name)) for name in names),
        ]
        for row in rows
    ]
    return tables.table(["lever", "what changed", *names], cells, left=2)


def _setting(setting: dict[str, Any]) -> str:
    words = (
        f"Per cent, {setting['epochs']} epoch(s) on {setting['share']:.0%} of what fold "
        f"{setting['fold']} trains on, tested on that fold."
    )
    return words if setting["share"] == 1 else f"{words} {SMALL}"


def _figure(value: Any) -> str:
    """A figure in per cent, or something else as it is."""
    return f"{value:.1f}" if isinstance(value, float) else _scalar(value)


def anything(content: Any, depth: int = 3) -> str:
    """Tables of a file whose shape is its writer's: text as it is, rows as tables."""
    if isinstance(content, list):
        return _rows([(str(i + 1), row) for i, row in enumerate(content)], number=True)
    if not isinstance(content, dict):
        return _scalar(content)
    if isinstance(text := content.get("markdown"), str):
        return text
    plain = {key: value for key, value in content.items() if not isinstance(value, dict | list)}
    words = [str(plain.pop(key)) for key in ("description", "note", "notes") if key in plain]
    parts = words
    if plain:
        parts.append(tables.table(["", ""], [[k, _scalar(v)] for k, v in plain.items()]))
    nested = {key: value for key, value in content.items() if key not in plain | {"note": 0}}
    nested = {key: value for key, value in nested.items() if isinstance(value, dict | list)}
    flat = {k: v for k, v in nested.items() if isinstance(v, dict) and _is_flat(v)}
    if flat:
        parts.append(_rows(list(flat.items())))
    for key, value in nested.items():
        if key not in flat and value:
            parts.append(f"{'#' * depth} {key}\n\n{anything(value, depth + 1)}")
    return "\n\n".join(part for part in parts if part)


def _is_flat(row: Any) -> bool:
    return isinstance(row, dict) and not any(isinstance(v, dict) for v in row.values())


def _rows(rows: list[tuple[str, Any]], *, number: bool = False) -> str:
    if not all(isinstance(row, dict) for _, row in rows):
        return ", ".join(_scalar(row) for _, row in rows)
    names = list(dict.fromkeys(key for _, row in rows for key in row))
    cells = [[name, *(_scalar(row.get(key)) for key in names)] for name, row in rows]
    if number:
        cells = [row[1:] for row in cells]
    return tables.table(names if number else ["", *names], cells)


def _scalar(value: Any) -> str:
    match value:
        case None:
            return tables.NONE
        case bool():
            return "yes" if value else "no"
        case float():
            return tables.NONE if math.isnan(value) else f"{value:.3f}"
        case {"mean": float() as mean, "sd": float() as spread}:
            return f"{mean:.3f} ± {spread:.3f}"
        case list():
            return "–".join(_scalar(item) for item in value)
        case _:
            return str(value)


Section = tuple[str, str, Make]

SECTIONS: tuple[Section, ...] = (
    ("Low empathy", "construct", _low_empathy),
    ("EPITOME levels", "levels", _levels),
    ("Rationales", "rationales", _own(tables.rationales, tables.RATIONALE_NOTES)),
    ("Micromodels, run here", "micromodels", _others(sections.micromodels)),
    ("ESConv strategies", "strategies", _strategies),
    (
        "Motivational interviewing (AnnoMI)",
        "annomi",
        _own(tables.annomi, tables.ANNOMI_NOTES),
    ),
    (
        "Empathic intents (EmpatheticDialogues)",
        "intents",
        _own(tables.classes, tables.INTENT_NOTES),
    ),
    ("Rated empathy (EmpatheticExchanges)", "baselines", _ratings),
    ("Calibration and confidence", "calibration", _alone(_calibration)),
    ("Perceived empathy", "perceived", _others(sections.perceived)),
    ("MITI summary", "miti", _others(miti_section)),
    ("Outcome risks", "outcomes", _others(outcomes_section)),
    ("Do the perceived heads differ?", "multitrait", _others(sections.multitrait)),
    ("Context probe", "probes", _others(sections.probes)),
    ("The small bundle beside the default one", "nano", _others(beside)),
    ("Levers, one by one", "ablation", _alone(ablation)),
    ("What did not work, or is not in the recipe", "ablation", _alone(failures)),
)

PICTURES = {
    "calibration": {"reliability.svg": "Reliability of every head before and after calibration"},
}


def main(
    folder: Annotated[Path, typer.Option(help="Folder with the JSON files.")] = FOLDER,
) -> None:
    """Write the document anew."""
    print(write(folder))


if __name__ == "__main__":
    typer.run(main)
