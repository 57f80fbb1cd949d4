"""Methods that predict labels: figures by head over the folds, one row for each variant.

{"of", "seed", "rows": {KEY: ROW}}
ROW = {"words", "context", "parameters", "folds", "heads": {HEAD: {FIGURE: SPREAD}}, ...}
SPREAD = {"mean", "sd", "folds": [value of each fold]}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from models.labels import RATIONALE_ORDER
from models.model.encoder import encoder_name
from models.pages import report
from research.folds import FOLDS, SEED
from research.method import Content, Method, Run

Ints = NDArray[np.int64]
Figures = dict[str, float]


@dataclass(frozen=True)
class Tested:
    """Labelled and predicted classes of a fold's test part, by head [n].

    `items` trained the model; `sizes` are its parameters, and those in training; `more` has figures
    by head beside those of labels.
    """

    gold: dict[str, Ints]
    given: dict[str, Ints]
    items: int
    sizes: tuple[int, int]
    more: dict[str, Figures] = field(default_factory=dict)


def by_mechanism(levels: Ints) -> dict[str, Ints]:
    """Columns of levels [n, 3] by mechanism."""
    return dict(zip(RATIONALE_ORDER, levels.T, strict=True))


@dataclass(frozen=True)
class LabelMethod(Method):
    """`encoder` is a folder or hub name of another pretrained encoder."""

    encoder: str | None = None

    def stored(self, content: Content, row: str, runs: Sequence[Run]) -> Content:
        """Add or replace the row."""
        rows = content.get("rows", {}) | {row: report.rounded(self.figures(row, runs))}
        return {"of": FOLDS, "seed": SEED} | content | {"rows": rows}

    def figures(self, row: str, runs: Sequence[Run]) -> dict[str, Any]:
        """The row over its folds."""
        found: list[Tested] = [run.found for run in runs]
        about = self.row(row)
        heads: dict[str, Any] = {}
        for head in found[0].gold:
            gold, given = [each.gold[head] for each in found], [each.given[head] for each in found]
            heads[head] = report.labels_over_folds(head, gold, given)
            if more := [each.more[head] for each in found if head in each.more]:
                means = {key: float(np.mean([one[key] for one in more])) for key in more[0]}
                heads[head] |= report.over_folds(more, means)
        return {
            "words": about.words,
            "context": about.context,
            "encoder": encoder_name(self.encoder),
            "parameters": found[-1].sizes[0],
            "trained": found[-1].sizes[1],
            "folds": [run.fold for run in runs],
            "items": [each.items for each in found],
            "tested": [len(next(iter(each.gold.values()))) for each in found],
            "minutes": sum(run.minutes for run in runs),
            "setting": msgspec.to_builtins(asdict(self), enc_hook=str),
            "heads": heads,
        }
