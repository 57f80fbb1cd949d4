"""Precision, recall and agreement of intents, as numbers and as the tables of docs/intents.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score

from models.evaluate.resampling import interval
from models.intents.utterances import LabelledUtterance
from models.pages.tables import table

Flags = NDArray[np.bool_]
FEWEST = 3
"""Positives below which an intent has no figures of its own in a part."""


def measure(truth: Flags, hits: Flags, names: Sequence[str]) -> dict[str, Any]:
    """Figures by intent and their mean, 0-1, with intervals from resampled utterances.

    `truth`, `hits` [utterances, intents]. The means are over the intents with enough positives.
    """
    rows = np.arange(len(truth))
    known = [k for k in range(len(names)) if truth[:, k].sum() >= FEWEST]
    return {
        "utterances": len(truth),
        "intents": {
            name: {
                "positives": int(truth[:, k].sum()),
                "hits": int(hits[:, k].sum()),
                "right": int((truth[:, k] & hits[:, k]).sum()),
                "precision": interval(rows, partial(_share, truth[:, k], hits[:, k])),
                "recall": interval(rows, partial(_share, hits[:, k], truth[:, k])),
            }
            for k, name in enumerate(names)
        },
        "counted": len(known),
        "f1": interval(rows, partial(_mean_f1, truth[:, known], hits[:, known])),
        "always": _mean_f1(truth[:, known], np.ones_like(hits[:, known]), rows),
    }


def agreement(
    first: Sequence[LabelledUtterance], second: Mapping[int, frozenset[str]], names: Sequence[str]
) -> dict[str, Any]:
    """Cohen's kappa of the two passes, over all yes-no decisions and by intent."""
    one = np.array([[name in each.intents for name in names] for each in first])
    two = np.array([[name in second[each.id] for name in names] for each in first])
    return {
        "utterances": len(first),
        "different": int((one != two).any(axis=1).sum()),
        "kappa": round(float(cohen_kappa_score(one.ravel(), two.ravel())), 3),
        "intents": {
            name: round(float(cohen_kappa_score(one[:, k], two[:, k])), 2)
            for k, name in enumerate(names)
        },
    }


def by_intent(
    figures: Mapping[str, Mapping[str, Any]], baseline: Mapping[str, Any], kappas: Mapping[str, Any]
) -> str:
    """A table with a row for each intent: both parts of one bundle, and a baseline's recall."""
    rows = []
    for name in kappas["intents"]:
        cells = [f"`{name}`", f"{kappas['intents'][name]:.2f}"]
        for found in figures.values():
            own = found["intents"][name]
            cells += [str(own["positives"]), _percent(own, "precision"), _percent(own, "recall")]
        own = baseline["intents"][name]
        cells += [_percent(own, "precision"), _percent(own, "recall")]
        rows.append(cells)
    parts = [f"{part}: {what}" for part in figures for what in ("n", "precision, %", "recall, %")]
    header = ["intent", "kappa", *parts, "tf-idf, written: precision, %", "recall, %"]
    return table(header, rows)


def overall(found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """A table with the mean F1 by vectors and part."""
    rows = []
    for vectors, parts in found.items():
        cells = [vectors]
        for own in parts.values():
            f1 = own["f1"]
            cells.append(f"{100 * f1['value']:.0f} ({100 * f1['low']:.0f}–{100 * f1['high']:.0f})")
        rows.append(cells)
    last = next(iter(found.values()))
    rows.append(
        ["every intent for every turn", *(f"{100 * p['always']:.0f}" for p in last.values())]
    )
    counts = [f"{name}, mean F1 of {own['counted']} intents, %" for name, own in last.items()]
    return table(["vectors", *counts], rows)


def _share(part: Flags, whole: Flags, rows: NDArray[np.int64]) -> float:
    chosen = rows[whole[rows]]
    return float(part[chosen].mean()) if len(chosen) else float("nan")


def _mean_f1(truth: Flags, hits: Flags, rows: NDArray[np.int64]) -> float:
    both = (truth[rows] & hits[rows]).sum(axis=0)
    total = truth[rows].sum(axis=0) + hits[rows].sum(axis=0)
    return float(np.mean(2 * both / np.maximum(total, 1)))


def _percent(own: Mapping[str, Any], name: str) -> str:
    found = own[name]
    if own["positives"] < FEWEST or np.isnan(found["value"]):
        return "–"
    return f"{100 * found['value']:.0f} ({100 * found['low']:.0f}–{100 * found['high']:.0f})"
