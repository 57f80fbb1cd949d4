"""The learning curve as the tables of docs/adaptation.md."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from models.pages.tables import NONE, table
from research.adaptation.learning_curve import PAYS, SIZES, Run
from research.adaptation.raters import RATERS

WORDS = {
    "same": "as the bundle (control)",
    "severity": "stricter",
    "threshold": "other threshold",
    "meaning": "other meaning",
    "wording": "other construct, in the words",
}


def tables(runs: Sequence[Run]) -> dict[str, str]:
    """The tables by the names of their markers."""
    own = [run for run in runs if run.method == "recalibration"]
    return {"curve": _curve(own), "pays": _pays(own)}


def adapter_tables(runs: Sequence[Run]) -> dict[str, str]:
    """The adapter beside the recalibration, on platforms that have both, by marker."""
    rows = []
    for raters, size in product(RATERS, SIZES):
        here = [run for run in runs if (run.raters, run.ratings) == (raters, size)]
        one, other = (
            {run.seed: run for run in here if run.method == method}
            for method in ("recalibration", "adapter")
        )
        if both := sorted(one.keys() & other.keys()):
            pairs = [[found[seed] for seed in both] for found in (one, other)]
            row = [WORDS[raters], str(size), str(len(both))]
            for found in pairs:
                row += [
                    str(sum(run.promoted for run in found)),
                    _spread([run.loss for run in found]),
                    _spread([run.kappa for run in found]),
                ]
            more = [
                b.loss - a.loss for a, b in zip(*pairs, strict=True) if a.promoted and b.promoted
            ]
            row.append(f"{_spread(more)}, n = {len(more)}" if more else NONE)
            rows.append([*row, f"{np.mean([run.attainable for run in pairs[0]]):.3f}"])
    header = ["raters", "ratings", "platforms"]
    for name in ("recalibration", "adapter"):
        header += [f"{name}: promoted", "log-loss difference", "kappa difference"]
    header += ["adapter - recalibration, where both were promoted", "attainable"]
    return {"adapter": table(header, rows)}


def _curve(runs: Sequence[Run]) -> str:
    rows = []
    for raters in RATERS:
        for size in SIZES:
            own = [run for run in runs if (run.raters, run.ratings) == (raters, size)]
            if own:
                rows.append([WORDS[raters], str(size), *_cells(own)])
    header = [
        "raters",
        "ratings",
        "platforms",
        "promoted",
        "made worse",
        "log-loss difference",
        "attainable",
        "kappa difference",
    ]
    return table(header, rows)


def _cells(own: Sequence[Run]) -> list[str]:
    worse = sum(run.loss > 0 for run in own)
    return [
        str(len(own)),
        str(sum(run.promoted for run in own)),
        str(worse),
        _spread([run.loss for run in own]),
        f"{np.mean([run.attainable for run in own]):.3f}",
        _spread([run.kappa for run in own]),
    ]


def _spread(values: Sequence[float]) -> str:
    """Mean, with the lowest and highest platform."""
    return f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def pays_from(runs: Sequence[Run], raters: str) -> int | None:
    """The lowest number of ratings from which enough platforms promote, here and at every more."""
    found = None
    for size in reversed(SIZES):
        own = [run for run in runs if (run.raters, run.ratings) == (raters, size)]
        if not own:
            continue
        if np.mean([run.promoted and run.loss < 0 for run in own]) < PAYS:
            break
        found = size
    return found


def _pays(runs: Sequence[Run]) -> str:
    rows = []
    for raters in dict.fromkeys(run.raters for run in runs):
        size = pays_from(runs, raters)
        rows.append(
            [
                WORDS[raters],
                "never (as it should be)"
                if raters == "same" and size is None
                else "not within 2,048"
                if size is None
                else str(size),
            ]
        )
    return table(["raters", "pays from, ratings"], rows)
