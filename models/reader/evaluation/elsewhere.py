"""The shipped reader on corpora that no model learned from.

Run as `python -m models.reader.evaluation.elsewhere`.

Motivational interviews by a language model, whose clients rated it with the CARE measure (MIBot),
and turns of customer support with one rater's marks (MAIA), whose licence allows no training. Each
figure has that of the answers' length next to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from models.data.corpora import REPOSITORY, resolve_data_dir
from models.evaluate.replay import START
from models.evaluate.resampling import auroc, interval, spearman
from models.labels import COUNSELLOR
from models.pages.tables import table, with_tables
from models.reader.evaluation import evaluated
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.measures.empathy import counsellor_features
from stream_app.core.measures.window import Neighbour, ScoringRequest, WindowTurn
from stream_app.core.session.ports import Encoding
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.bundle import SHIPPED
from stream_app.inference.scorer import OnnxScorer

PAGE = REPOSITORY / "docs" / "answers.md"
STORED = REPOSITORY / "docs" / "evaluation" / "reader" / "elsewhere.json"
CONTEXT = 3
AT_A_TIME = 256
COLUMNS = ("answer", "no lapse", "length")

Floats = NDArray[np.float64]
Turns = Sequence[tuple[int, str]]
Statistic = Callable[[Floats, Floats], float]


def answers(scorer: OnnxScorer, sessions: Sequence[Turns]) -> list[Floats]:
    """A table for each session, [counsellor turns, 3]: answer, no lapse (1 - lapse) and words."""
    texts = list({text: None for turns in sessions for _, text in turns})
    encoded: dict[str, Encoding] = {}
    for first in range(0, len(texts), AT_A_TIME):
        some = texts[first : first + AT_A_TIME]
        encoded |= dict(zip(some, scorer.encode(some, [Role.CLIENT] * len(some)), strict=True))
    found = []
    for turns in sessions:
        window = [
            WindowTurn(
                place,
                Role.COUNSELLOR if role == COUNSELLOR else Role.CLIENT,
                START,
                0,
                len(text.split()),
                encoded[text].vectors,
                {},
                tokens=encoded[text].tokens,
            )
            for place, (role, text) in enumerate(turns)
        ]
        requests = [
            ScoringRequest(
                turn,
                Stage.PROVISIONAL,
                [Neighbour(window[j], j - i) for j in range(max(0, i - CONTEXT), i)],
            )
            for i, turn in enumerate(window)
            if turn.role is Role.COUNSELLOR and i
        ]
        features = map(counsellor_features, scorer.score(requests))
        rows = [
            (each["answer"], 1 - each["lapse"], request.turn.words)
            for each, request in zip(features, requests, strict=True)
        ]
        found.append(np.array(rows, np.float64).reshape(-1, len(COLUMNS)))
    return found


def figure(
    values: Floats, truth: Floats, groups: Sequence[str], statistic: Statistic
) -> dict[str, Any]:
    """The statistic of each column of `values` against the truth, with its interval."""
    _, numbers = np.unique(groups, return_inverse=True)
    found: dict[str, Any] = {"rows": len(truth)}
    for column, name in enumerate(COLUMNS):
        own = values[:, column]

        def of_rows(rows: NDArray[np.int64], own: Floats = own) -> float:
            return statistic(own[rows], truth[rows])

        found[name] = interval(numbers, of_rows)
    return found


def told(values: Floats, truth: Floats) -> float:
    """AUROC; NaN where all are alike."""
    return auroc(truth > 0.5, values) if 0 < truth.mean() < 1 else float("nan")


def interviews(scorer: OnnxScorer, data_dir: Path) -> dict[str, Any]:
    """Mean answers of each interview against what its client said of it."""
    rated = [each for each in evaluated.mibot(data_dir) if each.mean_care is not None]
    means = np.array([rows.mean(0) for rows in answers(scorer, [each.turns for each in rated])])
    keys = [each.key for each in rated]
    care = np.array([each.mean_care for each in rated], np.float64)
    return {
        "MIBot: CARE": figure(means, care, keys, spearman),
        "MIBot: helpful": figure(means, np.array([e.helpful for e in rated], float), keys, told),
    }


def support(scorer: OnnxScorer, data_dir: Path) -> dict[str, Any]:
    """Agents' turns of customer support against the rater's marks, resampled by client."""
    turns = [each for each in evaluated.maia_turns(data_dir) if each.role == COUNSELLOR]
    rows = answers(scorer, [(*each.before, (each.role, each.text)) for each in turns])
    values = np.concatenate(rows)
    keys = np.array([each.client for each in turns])
    found = {}
    marks: dict[str, tuple[list[Any], Statistic]] = {
        "MAIA: quality so far": ([each.quality for each in turns], spearman),
        "MAIA: polite": ([each.polite for each in turns], told),
        "MAIA: understands": ([each.understands for each in turns], told),
    }
    for name, (given, statistic) in marks.items():
        known = np.array([mark is not None for mark in given])
        truth = np.array([float(mark) for mark in given if mark is not None])
        found[name] = figure(values[known], truth, list(keys[known]), statistic)
    return found


def as_table(found: dict[str, Any]) -> str:
    """A row a figure."""
    rows = [
        [name, str(own["rows"])]
        + [f"{own[c]['value']:.2f} [{own[c]['low']:.2f}, {own[c]['high']:.2f}]" for c in COLUMNS]
        for name, own in found.items()
    ]
    return table(["figure", "n", *COLUMNS], rows)


def main(
    bundle: Annotated[Path, typer.Option(help="Folder of a bundle with a reader.")] = SHIPPED
    / "default",
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    write: Annotated[bool, typer.Option(help="Store it and write the page's table.")] = False,
) -> None:
    """Print the table."""
    scorer = OnnxScorer(bundles.load(bundle))
    folder = resolve_data_dir(data_dir)
    found = interviews(scorer, folder) | support(scorer, folder)
    shown = as_table(found)
    print(shown)
    if write:
        STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_tables(page, {"elsewhere": shown}), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
