"""Counts what the list and the probe find and miss, for the tables of docs/crisis.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score

from models.crisis.turns import WrittenTurn
from models.evaluate.resampling import interval
from models.pages.tables import table
from stream_app.core.measures.crisis import find_phrases

Flags = NDArray[np.bool_]
LIST, HEAD, BOTH, EAGER = "list", "probe", "list or probe", "probe at a recall of 0.95 in training"
DETECTORS = (LIST, HEAD, BOTH, EAGER)


def hits(texts: Sequence[str], values: NDArray[np.float64], eager: float) -> dict[str, Flags]:
    """The turns that each detector finds; `values` of the probe, `eager` its other threshold."""
    listed = np.array([bool(find_phrases(text)) for text in texts])
    probe = values >= 0.5
    return {LIST: listed, HEAD: probe, BOTH: listed | probe, EAGER: values >= eager}


def measure(turns: Sequence[WrittenTurn], found: Mapping[str, Flags]) -> dict[str, Any]:
    """Recall and precision with intervals from resampled families, and both by category."""
    is_crisis = np.array([turn.is_crisis for turn in turns])
    _, families = np.unique([turn.family for turn in turns], return_inverse=True)
    report: dict[str, Any] = {
        "turns": len(turns),
        "crisis": int(is_crisis.sum()),
        "families": len(set(families.tolist())),
        "detectors": {},
        "categories": {},
    }
    for name, hit in found.items():
        report["detectors"][name] = {
            "recall": interval(families, partial(_share, hit, is_crisis)),
            "precision": interval(families, partial(_share, is_crisis, hit)),
        }
    for category in dict.fromkeys(turn.category for turn in turns):
        own = np.array([turn.category == category for turn in turns])
        report["categories"][category] = {
            "crisis": bool(is_crisis[own].all()),
            "turns": int(own.sum()),
            **{name: int(hit[own].sum()) for name, hit in found.items()},
        }
    return report


def per_thousand(found: Mapping[str, Flags]) -> dict[str, float]:
    """Hits of each detector per 1,000 turns."""
    return {name: round(1000 * float(hit.mean()), 1) for name, hit in found.items()}


def kappa(turns: Sequence[WrittenTurn], second: Mapping[int, str]) -> dict[str, Any]:
    """Agreement of the two labelling passes over these turns."""
    first = [turn.label for turn in turns]
    again = [second[turn.id] for turn in turns]
    return {
        "turns": len(turns),
        "different": sum(a != b for a, b in zip(first, again, strict=True)),
        "kappa": round(float(cohen_kappa_score(first, again)), 3),
    }


def _share(part: Flags, whole: Flags, rows: NDArray[np.int64]) -> float:
    chosen = rows[whole[rows]]
    return float(part[chosen].mean()) if len(chosen) else float("nan")


def tables(by_bundle: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The tables by the names of their markers; the figures of each bundle."""
    first = next(iter(by_bundle.values()))
    rows = []
    for bundle, figures in by_bundle.items():
        for name in DETECTORS:
            own = figures["written"]["detectors"][name]
            if name == LIST and bundle != next(iter(by_bundle)):
                continue
            label = name if name == LIST else f"{name} (`{bundle}`)"
            rows.append([label, _percent(own["recall"]), _percent(own["precision"])])
    written = table(["detector", "recall, %", "precision, %"], rows)
    rows = [
        [name, "yes" if own["crisis"] else "no", str(own["turns"])]
        + [str(own[detector]) for detector in DETECTORS]
        for name, own in first["written"]["categories"].items()
    ]
    categories = table(["category", "crisis language", "turns", *DETECTORS], rows)
    rows = [
        [f"{corpus} (`{bundle}`)", f"{own['turns']:,}"]
        + [f"{own['hits'][name]:.1f}" for name in DETECTORS]
        for bundle, figures in by_bundle.items()
        for corpus, own in figures["corpora"].items()
    ]
    corpora = table(["client turns", "number", *DETECTORS], rows)
    return {"written": written, "categories": categories, "corpora": corpora}


def _percent(found: Mapping[str, Any]) -> str:
    value, low, high = (100 * found[name] for name in ("value", "low", "high"))
    return f"{value:.0f} ({low:.0f}–{high:.0f})"
