"""The rows of the table: methods of `research.registry`, and what other commands measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from models.data import Conversation

if TYPE_CHECKING:
    from models.probes.scorers import LevelScorer

BUNDLES = Path("stream_app/bundles")
COMPARED = ("micromodels", "frozen_levels", "bi_encoder", "window_classifier")
"""Methods with rows in the table, in its order."""
BASELINES = "python -m models.evaluate.baselines"
SECOND = "python -m research.recipe.encoder_mean --encoder FOLDER"


@dataclass(frozen=True)
class Entry:
    """One row.

    `source` is the result file (a name in research/results, or a file of docs/evaluation) and
    `key` the row in it; `command` fills it. Without `scored`, speed and memory are those of the
    row `cost_of`, or not measured.
    """

    key: str
    words: str
    context: str
    source: str
    command: str
    scored: bool = False
    cost_of: str | None = None


def _majority(training: list[Conversation]) -> LevelScorer:
    from research.baselines.word_scorers import Majority  # noqa: PLC0415

    return Majority(training)


def _words(training: list[Conversation]) -> LevelScorer:
    from research.baselines.word_scorers import Words  # noqa: PLC0415

    return Words(training)


def _bundle(training: list[Conversation], *, name: str) -> LevelScorer:
    from models.probes.scorers import of_bundle  # noqa: PLC0415

    del training  # a bundle is trained already
    return of_bundle(BUNDLES / name, threads=1)


SCORERS: dict[str, Callable[[list[Conversation]], LevelScorer]] = {
    "majority": _majority,
    "words": _words,
    "ours": partial(_bundle, name="default"),
    "ours_small": partial(_bundle, name="nano"),
}
"""Rows of no method of the registry."""


def scorer_of(source: str, key: str, training: list[Conversation]) -> LevelScorer:
    """Make a row's scorer from the training pairs of a fold.

    It imports what this row needs and no more, for honest memory.
    """
    if key in SCORERS:
        return SCORERS[key](training)
    from research.registry import load  # noqa: PLC0415

    return load(source).scorer(key, training)


def entries() -> list[Entry]:
    """All rows, in the order of the table."""
    before = "seeker post"
    return [
        Entry("majority", "most frequent level", "none", "baselines", BASELINES, scored=True),
        Entry(
            *("words", "regression on tf-idf of the response", "none", "baselines", BASELINES),
            scored=True,
        ),
        *(entry for name in COMPARED for entry in _of_method(name)),
        Entry(
            *("bge-small-en-v1.5", "our recipe on EPITOME alone, from bge-small-en-v1.5", before),
            *("encoder_mean", SECOND),
        ),
        Entry(
            *("mean of both", "mean of that model and all-MiniLM-L6-v2's", before),
            *("encoder_mean", SECOND),
        ),
        Entry(
            *("ours", "ours: multi-task context head, shipped bundle", before),
            *("levels", "make folds evaluate"),
            scored=True,
        ),
        Entry("ours_small", "ours, small bundle", before, "nano", "make nano", scored=True),
    ]


def _of_method(name: str) -> Iterator[Entry]:
    from research.registry import load  # noqa: PLC0415

    for key, row in load(name).rows().items():
        if row.compared:
            command = f"python -m research run {name}"
            yield Entry(key, row.words, row.context, name, command, row.scored, row.cost_of)
