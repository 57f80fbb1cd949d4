"""Quality of each method, read from its result file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from models.labels import RATIONALE_ORDER
from models.pages.document import FOLDER as EVALUATION
from research.compare.entries import Entry
from research.method import RESULTS, Content

FIGURES = ("accuracy", "macro_f1", "mcc", "token_f1", "iou_f1")


@dataclass(frozen=True)
class Figure:
    """A mean over the three mechanisms, by fold, 0-1 (MCC: -1 to 1).

    A `pooled` figure has the same value, computed over all of its folds, for each of them.
    """

    by_fold: dict[int, float]
    pooled: bool = False

    @property
    def mean(self) -> float:
        """Mean over the folds."""
        return mean(self.by_fold.values())

    @property
    def sd(self) -> float | None:
        """Standard deviation over the folds; None for one fold or a pooled figure."""
        values = list(self.by_fold.values())
        return stdev(values) if len(values) > 1 and not self.pooled else None

    def of(self, fold: int) -> float | None:
        """The value of one fold, if it is known."""
        return None if self.pooled else self.by_fold.get(fold)


@dataclass(frozen=True)
class Quality:
    """Figures of one method, those that it has, and its number of parameters if it is known."""

    figures: dict[str, Figure]
    parameters: int | None = None

    @property
    def folds(self) -> list[int]:
        """Folds that the figures are from."""
        return sorted({fold for figure in self.figures.values() for fold in figure.by_fold})


def read(method: Entry, results: Path = RESULTS, evaluation: Path = EVALUATION) -> Quality | None:
    """A method's quality, or None if its file or row is missing."""
    own = _file(results / f"{method.source}.json")
    if own is not None:
        row = own["rows"].get(method.key)
        return None if row is None else Quality(_by_head(row, row["folds"]), row["parameters"])
    content = _file(evaluation / f"{method.source}.json")
    return None if content is None else READERS[method.source](content, method.key, evaluation)


def _file(path: Path) -> Content | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _by_head(content: Content, folds: list[int]) -> dict[str, Figure]:
    """Mean over the mechanisms of each figure that all of them have."""
    rows = content["heads"]
    found = {}
    for name in FIGURES:
        if all(name in rows[head] for head in RATIONALE_ORDER):
            columns = [rows[head][name]["folds"] for head in RATIONALE_ORDER]
            each = [mean(values) for values in zip(*columns, strict=True)]
            found[name] = Figure(dict(zip(folds, each, strict=True)))
    return found


def _baselines(content: Content, key: str, folder: Path) -> Quality | None:
    del folder
    heads = {head: content["heads"][head][key] for head in RATIONALE_ORDER}
    return Quality(_by_head({"heads": heads}, content["folds"]))


def _micromodels(content: Content, key: str, folder: Path) -> Quality | None:
    del folder
    rows = content[key]
    heads = {
        head: {
            name: {"folds": [fold[name] for fold in rows[head]["folds"]]}
            for name in FIGURES
            if name in rows[head]["folds"][0]
        }
        for head in RATIONALE_ORDER
    }
    return Quality(_by_head({"heads": heads}, list(range(content["folds"]))))


def _second_encoder(content: Content, key: str, folder: Path) -> Quality | None:
    """Figures are pooled over the folds."""
    del folder
    if key not in content["rows"]:
        return None
    row = content["rows"][key]
    return Quality(
        {
            name: Figure(dict.fromkeys(content["folds"], row[name]), pooled=True)
            for name in FIGURES
            if name in row
        }
    )


def _ours(content: Content, key: str, folder: Path) -> Quality | None:
    del key
    heads = {head: dict(content["views"]["final"]["shipped"][head]) for head in RATIONALE_ORDER}
    spans = _file(folder / "rationales.json")
    if spans is not None and spans["folds"] == content["folds"]:
        for head in RATIONALE_ORDER:
            heads[head] |= {name: spans["rows"][head][name] for name in ("token_f1", "iou_f1")}
    small = _file(folder / "nano.json")
    parameters = small["parameters"][0] if small else None
    return Quality(_by_head({"heads": heads}, content["folds"]), parameters)


def _small(content: Content, key: str, folder: Path) -> Quality | None:
    """The small bundle was compared on another split, so only its size is read."""
    del key, folder
    return Quality({}, content["parameters"][1])


READERS = {
    "baselines": _baselines,
    "micromodels": _micromodels,
    "encoder_mean": _second_encoder,
    "levels": _ours,
    "nano": _small,
}
