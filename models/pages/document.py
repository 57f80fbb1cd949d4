"""Writes docs/evaluation.md and the pages behind it from the JSON in docs/evaluation/.

`python -m models.pages.document` needs neither models nor corpora. It uses the files that other
commands have written; sections of missing files say so.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct
from scipy.stats import t as student

from models.data.corpora import REPOSITORY
from models.evaluate import choices
from models.evaluate.bundle_comparison import comparison_tables
from models.fit.calibrate import LARGEST_ABSTENTION, RIGHT_SHARE
from models.pages import sections, tables
from models.pages.low_empathy import low_empathy_section, shipped_section
from models.pages.miti import miti_section
from models.pages.outcomes import outcomes_section
from models.pages.outside import outside
from models.pages.published import TARGETS, Target

FOLDER = REPOSITORY / "docs" / "evaluation"
NOT_YET = "Not measured yet: `{command}` writes `docs/evaluation/{name}.json`."
COMMANDS = {
    "construct": "python -m models.construct evaluate",
    "construct_shipped": "python -m models.construct shipped",
    "baselines": "python -m models.evaluate.baselines",
    "micromodels": "python -m research run micromodels",
    "encoder_mean": "python -m research.recipe.encoder_mean --encoder FOLDER",
    "whole_recipe": "python -m research.recipe.whole_recipe FOLDER FOLDER",
    "levels": "python -m models.evaluate",
    "rationales": "python -m models.evaluate",
    "gold_rationales": "python -m models.evaluate.gold_rationales",
    "strategies": "python -m models.evaluate",
    "annomi": "python -m models.evaluate",
    "intents": "python -m models.evaluate",
    "ratings": "python -m models.evaluate",
    "calibration": "python -m models.evaluate",
    "perceived": "python -m models.outcomes ratings",
    "outcomes": "python -m models.outcomes evaluate",
    "multitrait": "python -m models.evaluate.multitrait",
    "miti": "python -m models.evaluate.miti --bundle stream_app/bundles/default",
    "probes": "python -m models.probes",
    "nano": "python -m models.distil compare",
    "ablation": "python -m research.recipe.ablation",
}

Content = dict[str, Any]
Make = Callable[[Any, Content], str]
"""Writes a section from its own file and, if needed, from all files by name."""

CHOICES_TITLE = "Hyper-parameters chosen on the evaluated folds"
HEAD = """\
# Evaluation

How well the scores agree with people: first on data that no model was trained on, then against the
targets set before training. The tables behind this summary are [below](#tables).

Figures are in per cent unless stated otherwise. Folds consist of whole conversations, or of all
responses to one seeker post. Temperatures, thresholds and offsets are fitted for each fold on the
predictions of the other folds' models; hyper-parameters chosen on these folds are
[listed]({choices}). Who wrote and labelled each corpus, and how far people agree on it, is in the
[datasheets](datasheets/index.md).

± is the standard deviation over folds, not an interval, and published figures come from other
splits of other sizes. No row shows that one method is better than another; only a difference with
an interval does, and it is given where it was computed."""
TABLES = """\
`python -m models.pages.document` writes these pages from the files in [evaluation/](evaluation/);
no figure in them is typed by hand."""


def write_json(path: Path, content: object) -> None:
    """Write one of the evaluation's files."""
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def read_all(folder: Path) -> dict[str, Any]:
    """Read the existing files of the evaluation, by name."""
    return {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name in COMMANDS
        if (path := folder / f"{name}.json").is_file()
    }


def write(folder: Path = FOLDER) -> Path:
    """Write `evaluation.md` beside the folder and its tables into it; return the summary's path."""
    summary = folder.with_suffix(".md")
    files = read_all(folder)
    for part in PARTS:
        folder.joinpath(f"{part.name}.md").write_text(page(part, files, folder), encoding="utf-8")
    summary.write_text(summary_page(files, folder), encoding="utf-8")
    return summary


def summary_page(files: dict[str, Any], folder: Path) -> str:
    """Return the summary: figures outside the training data, the targets, the list of pages."""
    chosen = next(part.name for part in PARTS if part.with_choices)
    anchor = CHOICES_TITLE.lower().replace(" ", "-")
    parts = [HEAD.format(choices=f"{folder.name}/{chosen}.md#{anchor}")]
    if (first := outside(folder)) is not None:
        parts.append(f"## Outside the training data\n\n{first}")
    parts.append("## Targets\n\n" + targets(files) + "\n\n" + TARGET_NOTES)
    rows = [[f"[{part.title}]({folder.name}/{part.name}.md)", part.about] for part in PARTS]
    parts.append(f"## Tables\n\n{TABLES}\n\n" + tables.table(["page", "what"], rows, left=2))
    return "\n\n".join(parts) + "\n"


def page(part: Part, files: dict[str, Any], folder: Path) -> str:
    """A page of tables as Markdown, with links that hold one folder further down."""
    parts = [f"# {part.title}\n\n{part.about} A page of the [evaluation](evaluation.md)."]
    for title, name, make in part.sections:
        body = section(files, name, make)
        shown = [
            f"![{words}]({picture})"
            for picture, words in PICTURES.get(name, {}).items()
            if (folder / picture).is_file()
        ]
        parts.append("\n\n".join([f"## {title}", body, *shown]))
    if part.with_choices:
        parts.append(f"## {CHOICES_TITLE}\n\n{choices.markdown()}")
    return PAGE_LINK.sub("](../", "\n\n".join(parts)) + "\n"


def section(files: dict[str, Any], name: str, make: Make | None = None) -> str:
    """The tables of one file, or a note that it is missing."""
    if not files.get(name):
        return NOT_YET.format(command=COMMANDS[name], name=name)
    make = make or next(own for _, known, own in sections_of_all() if known == name)
    return make(files[name], files)


TARGET_NOTES = """\
Intervals are at 95 %: Student's over the folds where a figure is a mean of folds (five folds, so
it is rough), else the interval in the figure's own table. "Uncertain" marks a figure whose interval
contains the target. Gold rationales are the shipped bundle's, on the tenth of EPITOME that its
training left out; the other rows of EPITOME are the folds'. Targets are this project's own, set
before training; reaching one says nothing about the published figures in the same row."""


def targets(files: dict[str, Any]) -> str:
    """Targets set before training, published figures and results."""
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
    """Whether the figure reaches its target, or "uncertain" if its interval contains the target."""
    if target.wanted is None:
        return tables.NONE
    reached = value <= target.wanted if target.most else value >= target.wanted
    unsure = limits is not None and limits[0] <= target.wanted <= limits[1]
    return ("yes" if reached else "**no**") + (", uncertain" if unsure else "")


def interval_of(files: dict[str, Any], target: Target) -> tuple[float, float] | None:
    """The 95 % interval of a target's figure, or None."""
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
    """The figure at a target's path, or None."""
    value: Any = files
    for key in target.path:
        value = value.get(key) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) else None


def _with_folds(make: Make, notes: str) -> Make:
    def section(content: Content, files: Content) -> str:
        return "\n\n".join([tables.folds_line(content), make(content, files), notes])

    return section


def _without_files(make: Callable[[Any], str]) -> Make:
    """Adapt a section that needs no other file."""
    return lambda content, _: make(content)


def _tolerant(make: Callable[[Content], str]) -> Make:
    """Adapt a section for another command's file; an unknown structure is printed as is."""

    def section(content: Content, _: Content) -> str:
        try:
            return make(content)
        except (KeyError, TypeError, ValueError, AttributeError):
            return generic_tables(content)

    return section


def _low_empathy(content: Content, files: Content) -> str:
    return _tolerant(lambda own: low_empathy_section(own, files.get("outcomes")))(content, files)


def _levels(content: Content, files: Content) -> str:
    pairs = content["views"]["final"]["shipped"]["emotional_reactions"]["n"]
    notes = tables.LEVEL_NOTES.format(pairs=pairs)
    weak = tables.weak_interpretations(content, files)
    return _with_folds(tables.levels, f"{weak}\n\n{notes}")(content, files)


def _strategies(content: Content, files: Content) -> str:
    turns = content["views"]["final"]["classes"]["shipped"]["n"]
    return _with_folds(tables.strategies, tables.STRATEGY_NOTES.format(turns=turns))(content, files)


def _ratings(content: Content, files: Content) -> str:
    """Rated empathy: the baselines exist before any model learns the head."""
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
    "These small trainings compare levers with each other, not with the shipped model; what helps "
    "a short training (fewer tasks, no contrast) need not help a full one."
)
ONE_RUN = "One training a row: there is no interval, and no row is shown to be better than another."


def ablation(rows: Any) -> str:
    """Levers that were kept, with the recipe without each of them."""
    return _levers(rows, kept=True)


def failures(rows: Any) -> str:
    """Levers that were tried and rejected."""
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
    """Format a figure in per cent; other values as they are."""
    return f"{value:.1f}" if isinstance(value, float) else _scalar(value)


def generic_tables(content: Any, depth: int = 3) -> str:
    """Tables of a file of unknown structure: text as it is, rows as tables."""
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
            parts.append(f"{'#' * depth} {key}\n\n{generic_tables(value, depth + 1)}")
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
"""Title, name of the file, and what writes the section."""


class Part(Struct, frozen=True):
    """A page of tables beside the summary."""

    name: str
    title: str
    about: str
    sections: tuple[Section, ...]
    with_choices: bool = False


PARTS = (
    Part(
        "low-empathy",
        "Low empathy",
        "The low-empathy risk on sessions whose empathy is known, over folds and as shipped.",
        (
            ("Low empathy", "construct", _low_empathy),
            ("Low empathy: the shipped bundle", "construct_shipped", _tolerant(shipped_section)),
        ),
    ),
    Part(
        "expressed",
        "Expressed empathy",
        "EPITOME's levels and rationales, and what other encoders and micromodels reach.",
        (
            ("EPITOME levels", "levels", _levels),
            ("Rationales", "rationales", _with_folds(tables.rationales, tables.RATIONALE_NOTES)),
            (
                "Rationales of the shipped bundle",
                "gold_rationales",
                _tolerant(sections.gold_rationales),
            ),
            ("Micromodels, run here", "micromodels", _tolerant(sections.micromodels)),
            ("A second encoder", "encoder_mean", _tolerant(sections.encoder_mean)),
            (
                "A second encoder, and a student of it, in the whole recipe",
                "whole_recipe",
                _tolerant(sections.whole_recipe),
            ),
        ),
    ),
    Part(
        "conduct",
        "Conduct and intents",
        "Strategies of support, motivational interviewing, empathic intents, and MITI summaries.",
        (
            ("ESConv strategies", "strategies", _strategies),
            (
                "Motivational interviewing (AnnoMI)",
                "annomi",
                _with_folds(tables.annomi, tables.ANNOMI_NOTES),
            ),
            (
                "Empathic intents (EmpatheticDialogues)",
                "intents",
                _with_folds(tables.classes, tables.INTENT_NOTES),
            ),
            ("MITI summary", "miti", _tolerant(miti_section)),
        ),
    ),
    Part(
        "perceived",
        "Perceived empathy and outcomes",
        "Ratings of listeners, risks of outcomes, and whether the perceived heads differ.",
        (
            ("Rated empathy (EmpatheticExchanges)", "baselines", _ratings),
            ("Perceived empathy", "perceived", _tolerant(sections.perceived)),
            ("Outcome risks", "outcomes", _tolerant(outcomes_section)),
            ("Do the perceived heads differ?", "multitrait", _tolerant(sections.multitrait)),
        ),
    ),
    Part(
        "trust",
        "Calibration and context",
        "Whether probabilities mean what they say, and whether scores use the context.",
        (
            ("Calibration and confidence", "calibration", _without_files(_calibration)),
            ("Context probe", "probes", _tolerant(sections.probes)),
        ),
    ),
    Part(
        "recipe",
        "Bundles and the training recipe",
        "The small bundle beside the default one, and what each part of the recipe adds.",
        (
            (
                "The small bundle compared with the default one",
                "nano",
                _tolerant(comparison_tables),
            ),
            ("Ablation of the training recipe", "ablation", _without_files(ablation)),
            ("Rejected changes to the recipe", "ablation", _without_files(failures)),
        ),
        with_choices=True,
    ),
)


def sections_of_all() -> list[Section]:
    """The sections of all pages."""
    return [own for part in PARTS for own in part.sections]


PAGE_LINK = re.compile(r"\]\((?=[\w/-]+\.md)")
"""The beginning of a relative link to a page of `docs`."""
PICTURES = {
    "calibration": {"reliability.svg": "Reliability of every head before and after calibration"},
}


def main(
    folder: Annotated[Path, typer.Option(help="Folder with the JSON files.")] = FOLDER,
) -> None:
    """Rewrite the document."""
    print(write(folder))


if __name__ == "__main__":
    typer.run(main)
