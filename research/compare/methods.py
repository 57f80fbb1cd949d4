"""The methods of the table: where their figures are, and how each scores a dialogue here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from models.data import Conversation

if TYPE_CHECKING:
    from models.probes.scorers import LevelScorer

Load = Callable[[list[Conversation]], "LevelScorer"]
"""Makes a scorer from the training pairs of a fold; imports what it needs, for honest memory."""

BUNDLES = Path("stream_app/bundles")


@dataclass(frozen=True)
class Method:
    """One row.

    `source` is the result file (a name in research/results, or a file of docs/evaluation) and
    `key` the row in it; `command` fills it. `quick` commands take minutes on one core and are run
    by `research.compare` when their file is missing. Without `load`, speed and memory are those of
    the row named in `cost_of`, or not measured.
    """

    key: str
    words: str
    context: str
    source: str
    command: str
    load: Load | None = None
    quick: bool = False
    cost_of: str | None = None


def _majority(training: list[Conversation]) -> LevelScorer:
    from research.compare.word_scorers import Majority  # noqa: PLC0415

    return Majority(training)


def _words(training: list[Conversation]) -> LevelScorer:
    from research.compare.word_scorers import Words  # noqa: PLC0415

    return Words(training)


def _micromodels(training: list[Conversation]) -> LevelScorer:
    from research.micromodels.scorer import fit_levels  # noqa: PLC0415
    from research.sentence_vectors import SentenceEncoder  # noqa: PLC0415

    scorer = fit_levels(training)
    scorer.fitted.embed = SentenceEncoder()  # without the vectors that are cached already
    return scorer


def _frozen(key: str) -> Load:
    def load(training: list[Conversation]) -> LevelScorer:
        from research.frozen_levels import ROWS, Embedder, FrozenLevels  # noqa: PLC0415
        from research.sentence_vectors import CACHE, SentenceEncoder  # noqa: PLC0415

        scorer = FrozenLevels(Embedder(SentenceEncoder(CACHE), ROWS[key].input), training)
        scorer.embed.encode = SentenceEncoder()  # without the vectors that are cached already
        return scorer

    return load


def _bi_encoder(key: str) -> Load:
    def load(training: list[Conversation]) -> LevelScorer:
        from research.bi_encoder.scorer import untrained  # noqa: PLC0415

        return untrained(key, training)

    return load


def _window_classifier(key: str) -> Load:
    def load(training: list[Conversation]) -> LevelScorer:
        from research.window_classifier.scorer import untrained  # noqa: PLC0415

        return untrained(key, training)

    return load


def _bundle(name: str) -> Load:
    def load(training: list[Conversation]) -> LevelScorer:
        from models.probes.scorers import of_bundle  # noqa: PLC0415

        del training  # a bundle is trained already
        return of_bundle(BUNDLES / name, threads=1)

    return load


BASELINES = "python -m models.evaluate.baselines"
FROZEN = "python -m research.frozen_levels"
BI_ENCODER = "python -m research.bi_encoder"
WINDOW = "python -m research.window_classifier"
SECOND = "python -m research.encoder_mean --encoder FOLDER"


def _rows_of_bi_encoder() -> list[Method]:
    from research.bi_encoder.design import DESIGNS  # noqa: PLC0415

    measured = ("bi_encoder", "no_attention", "no_seeker", "window", "independent")
    return [
        Method(
            key,
            design.words,
            design.seeker_words,
            "bi_encoder",
            f"{BI_ENCODER} --only {key}",
            load=_bi_encoder(key) if key in measured else None,
            cost_of="bi_encoder" if design.context == "attention" and design.multitask else None,
        )
        for key, design in DESIGNS.items()
    ]


def _rows_of_window_classifier() -> list[Method]:
    from research.window_classifier.design import PLANNED  # noqa: PLC0415

    return [
        Method(
            design.key,
            design.words,
            design.context,
            "window_classifier",
            f"{WINDOW} --only {design.key}",
            load=_window_classifier(design.key),
        )
        for design in PLANNED
        if design.task == "levels"
    ]


def methods() -> list[Method]:
    """All rows, in the order of the table."""
    return [
        Method("majority", "most frequent level", "none", "baselines", BASELINES, _majority),
        Method(
            "words", "regression on tf-idf of the response", "none", "baselines", BASELINES, _words
        ),
        Method(
            "micromodels",
            "micromodels (Lee et al.)",
            "none",
            "micromodels",
            "python -m research.micromodels",
            _micromodels,
        ),
        *(
            Method(key, words, context, "frozen_levels", FROZEN, _frozen(key), quick=True)
            for key, words, context in (
                ("frozen_alone", "frozen encoder, response alone", "none"),
                (
                    "frozen_two_vectors",
                    "frozen encoder, vectors of seeker post and response",
                    "seeker post",
                ),
                ("frozen_window", "frozen encoder, both in one text", "seeker post"),
            )
        ),
        *_rows_of_bi_encoder(),
        *_rows_of_window_classifier(),
        Method(
            "bge-small-en-v1.5",
            "our recipe on EPITOME alone, from bge-small-en-v1.5",
            "seeker post",
            "encoder_mean",
            SECOND,
        ),
        Method(
            "mean of both",
            "mean of that model and all-MiniLM-L6-v2's",
            "seeker post",
            "encoder_mean",
            SECOND,
        ),
        Method(
            "ours",
            "ours: multi-task context head, shipped bundle",
            "seeker post",
            "levels",
            "make folds evaluate",
            _bundle("default"),
        ),
        Method(
            "ours_small",
            "ours, small bundle",
            "seeker post",
            "nano",
            "make nano",
            _bundle("nano"),
        ),
    ]
