"""Recall of the default bundle's reader on crisis language, by kind, at few false alarms.

`python -m models.reader.evaluation.crisis_kinds` scores the turns written for `models.crisis`,
which no model learned from, and ordinary client turns. Two thresholds let one and five of 1,000
ordinary turns pass; at each it counts what list and reader find together. `--write` puts the
table into docs/crisis.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from models.crisis import turns
from models.crisis.turns import WrittenTurn
from models.data.corpora import REPOSITORY, resolve_data_dir
from models.evaluate.replay import START
from models.evaluate.resampling import auroc, interval
from models.pages.tables import table, with_tables
from models.reader import corpora
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.measures.crisis import find_phrases
from stream_app.core.measures.window import ScoringRequest, WindowTurn
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.bundle import SHIPPED
from stream_app.inference.scorer import OnnxScorer

PAGE = REPOSITORY / "docs" / "crisis.md"
STORED = REPOSITORY / "docs" / "evaluation" / "reader" / "crisis-kinds.json"
HEAD = "crisis_language"
FALSE_ALARMS = (1, 5)
"""False alarms in 1,000 ordinary client turns."""
AT_A_TIME = 256

Values = NDArray[np.float64]
Flags = NDArray[np.bool_]


def values_of(scorer: OnnxScorer, texts: Sequence[str]) -> Values:
    """The reader's probability of crisis language of each text, as a client turn on its own."""
    found: list[float] = []
    for first in range(0, len(texts), AT_A_TIME):
        some = list(texts[first : first + AT_A_TIME])
        encoded = scorer.encode(some, [Role.CLIENT] * len(some))
        requests = [
            ScoringRequest(
                WindowTurn(0, Role.CLIENT, START, 0, 0, each.vectors, {}, tokens=each.tokens),
                Stage.PROVISIONAL,
                [],
            )
            for each in encoded
        ]
        found += [scores.client[HEAD]["yes"] for scores in scorer.score(requests)]
    return np.array(found)


def threshold_of(ordinary: Values, alarms: int) -> float:
    """The value that `alarms` of 1,000 ordinary turns pass.

    >>> threshold_of(np.arange(2000) / 2000, 1)
    0.999
    """
    return float(np.sort(ordinary)[len(ordinary) - round(alarms * len(ordinary) / 1000)])


def measured(
    written: Sequence[WrittenTurn], values: Values, listed: Flags, ordinary: Values
) -> dict[str, Any]:
    """Recall of all crisis turns and hits by category, at each threshold and of the list alone."""
    is_crisis = np.array([turn.is_crisis for turn in written])
    _, families = np.unique([turn.family for turn in written], return_inverse=True)
    hits = {"list": listed}
    thresholds = {}
    for alarms in FALSE_ALARMS:
        thresholds[str(alarms)] = threshold_of(ordinary, alarms)
        hits[f"list or reader, {alarms} of 1,000"] = listed | (values >= thresholds[str(alarms)])
    found: dict[str, Any] = {
        "ordinary": len(ordinary),
        "thresholds": thresholds,
        "auroc": auroc(is_crisis, values),
        "recall": {},
        "categories": {},
    }
    for name, hit in hits.items():

        def recall(rows: NDArray[np.int64], hit: Flags = hit) -> float:
            own = rows[is_crisis[rows]]
            return float(hit[own].mean()) if len(own) else float("nan")

        found["recall"][name] = interval(families, recall)
    for category in dict.fromkeys(turn.category for turn in written):
        own = np.array([turn.category == category for turn in written])
        found["categories"][category] = {
            "crisis": bool(is_crisis[own].all()),
            "turns": int(own.sum()),
            **{name: int(hit[own].sum()) for name, hit in hits.items()},
        }
    return found


def as_table(found: dict[str, Any]) -> str:
    """A row a category, and one with the recall of all crisis turns."""
    detectors = list(found["recall"])
    rows = [
        [name, "yes" if own["crisis"] else "no", str(own["turns"])]
        + [str(own[detector]) for detector in detectors]
        for name, own in found["categories"].items()
    ]
    everything = sum(own["turns"] for own in found["categories"].values() if own["crisis"])
    rows.append(
        ["recall of all, %", "yes", str(everything)]
        + [
            f"{100 * each['value']:.0f} ({100 * each['low']:.0f}–{100 * each['high']:.0f})"
            for each in found["recall"].values()
        ]
    )
    return table(["category", "crisis language", "turns", *detectors], rows)


def main(
    bundle: Annotated[Path, typer.Option(help="Folder of a bundle with a reader.")] = SHIPPED
    / "default",
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    write: Annotated[bool, typer.Option(help="Store it and write the page's table.")] = False,
) -> None:
    """Print the table."""
    scorer = OnnxScorer(bundles.load(bundle))
    written = turns.read()
    ordinary = corpora.ordinary_turns(resolve_data_dir(data_dir))
    found = measured(
        written,
        values_of(scorer, [turn.text for turn in written]),
        np.array([bool(find_phrases(turn.text)) for turn in written]),
        values_of(scorer, [each.text for each in ordinary]),
    )
    shown = as_table(found)
    print(shown)
    print(f"AUROC of the reader {found['auroc']:.3f}, thresholds {found['thresholds']}")
    if write:
        STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_tables(page, {"kinds": shown}), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
