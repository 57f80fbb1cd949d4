"""Empathy in counselling without labelled counselling (Wu et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from models.evaluate.metrics import accuracy
from models.model.encoder import encoder_name
from models.pages.report import rounded
from research.low_resource import measure, page
from research.low_resource.exchanges import CONTRASTS, CONTROLS, SOURCES
from research.low_resource.nli import FrozenInference, Inference, PretrainedInference, snli
from research.method import Content, Inputs, Method, MethodError, Row, Run
from research.sentence_vectors import CORPORA_CACHE, SentenceEncoder


@dataclass(frozen=True)
class LowResource(Method):
    """`positive` and `negative`: one pair of corpora instead of all contrasts and controls.

    `nli` is the folder or hub name of an inference model instead of the stand-in; `size` counts
    the training exchanges of a side. Another encoder needs another `cache`, the file of vectors.
    """

    name: ClassVar = page.NAME
    paper: ClassVar = "Wu et al. 2021, Towards Low-Resource Real-Time Assessment of Empathy"
    page: ClassVar = "low-resource"
    over_folds: ClassVar = False

    positive: str | None = None
    negative: str | None = None
    nli: str | None = None
    size: int = 800
    snli_rows: int = 3000
    encoder: str | None = None
    cache: Path = CORPORA_CACHE
    bf16: bool = True

    def rows(self) -> dict[str, Row]:
        return {
            "contrasts": Row("classifiers of two corpora, on labelled targets"),
            "zero_shot": Row("natural language inference"),
            "few_shot": Row("a few labelled turns, from a contrast"),
        }

    @cached_property
    def encode(self) -> SentenceEncoder:
        """The encoder with the vectors that are cached already."""
        return SentenceEncoder(self.cache, self.encoder, bf16=self.bf16)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The chosen pair, or all contrasts and controls.

        Raises:
            MethodError: one side alone is given, or an unknown corpus.
        """
        first, second = self.positive, self.negative
        if first is None and second is None:
            return [*CONTRASTS, *CONTROLS]
        if first not in SOURCES or second not in SOURCES or first == second:
            known = ", ".join(SOURCES)
            raise MethodError(f"positive and negative are two different ones of {known}")
        return [(first, second)]

    def run(self, row: str, fold: int, inputs: Inputs) -> Content:
        if fold != measure.TEST_FOLD:
            raise MethodError(f"the targets' test part is fold {measure.TEST_FOLD}")
        pairs = self.pairs
        given = inputs.conversations, inputs.folder, self.encode
        if row == "contrasts":
            return measure.contrasts(*given, pairs=pairs, size=self.size)
        if row == "few_shot":
            return {row: measure.curves(*given, pair=pairs[0], size=self.size)}
        try:
            about, inference = self.inference(inputs)
        except ValueError as problem:
            raise MethodError(str(problem)) from problem
        return {"nli": about, row: measure.zero_shot_figures(inputs.conversations, inference)}

    def inference(self, inputs: Inputs) -> tuple[Content, Inference]:
        """The inference model, with its name and its accuracy where that is measured."""
        if self.nli is not None:
            return {"name": self.nli, "accuracy": None}, PretrainedInference(self.nli)
        stand_in = FrozenInference(snli(inputs.folder, 0, self.snli_rows), self.encode)
        test = snli(inputs.folder, 1, self.snli_rows // 2)
        premises, hypotheses, labels = zip(*test, strict=True)
        reached = accuracy(labels, stand_in.labels(premises, hypotheses))
        return {"name": "stand-in on SNLI", "accuracy": reached}, stand_in

    def stored(self, content: Content, row: str, runs: Sequence[Run]) -> Content:
        """Replace the row's part of the file."""
        del row
        (run,) = runs
        return content | {"encoder": encoder_name(self.encoder), **rounded(run.found, 4)}

    def values(self, results: Path) -> dict[str, Any] | None:
        return page.values(results)
