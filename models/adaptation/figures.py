"""The learning curve as the tables of docs/adaptation.md."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.adaptation.learning_curve import PAYS, SIZES, Run
from models.adaptation.raters import RATERS
from models.evaluate.tables import table

WORDS = {
    "same": "as the bundle (control)",
    "severity": "stricter",
    "threshold": "other threshold",
    "meaning": "other meaning",
}


def tables(runs: Sequence[Run]) -> dict[str, str]:
    """The tables by the names of their markers."""
    return {"curve": _curve(runs), "pays": _pays(runs)}


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
    for raters in RATERS:
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
