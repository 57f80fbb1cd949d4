"""Micromodels (Lee et al. 2023): their levels and rationales, and how few seeds they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from models.data import Conversation
from models.data.corpora import Turn
from models.labels import COUNSELLOR
from models.model.encoder import load_tokenizer
from models.pages.document import FOLDER as EVALUATION
from models.pages.published import MAJORITY, MICROMODELS
from models.pages.report import rounded
from research.folds import FOLDS, SEED, part_of
from research.method import Content, Inputs, Method, Row, Run
from research.micromodels import page
from research.micromodels.evaluation import evaluate, summary
from research.micromodels.explanation import explain, importances, in_words
from research.micromodels.model import Micromodels
from research.micromodels.scorer import MicromodelLevels, fit_levels, warmed
from research.micromodels.seed_sizes import over_all_folds, study, without_rationale
from research.sentence_vectors import SentenceEncoder

EXAMPLE = "I am so sorry that you had to go through this. What happened after that?"
OWN_SEEDS = "own_seeds"


@dataclass(frozen=True)
class Levels(Method):
    """The figures are those of docs/evaluation."""

    name: ClassVar = "micromodels"
    paper: ClassVar = "Lee et al. 2023, Table 1"
    folds: ClassVar = tuple(range(FOLDS))
    file_folder: ClassVar = EVALUATION

    def rows(self) -> dict[str, Row]:
        return {
            "micromodels": Row("micromodels (Lee et al.)", compared=True, scored=True),
            OWN_SEEDS: Row("micromodels with a training response's own rationales as seeds"),
        }

    def run(self, row: str, fold: int, inputs: Inputs) -> dict[str, dict[str, float]]:
        part = part_of(inputs.pairs, fold)
        embed, tokenizer = warmed(inputs.pairs), load_tokenizer()
        fitted = Micromodels(part.train, embed, tokenizer, own_seeds=row == OWN_SEEDS)
        return evaluate(fitted, part.test)

    def stored(self, content: Content, row: str, runs: Sequence[Run]) -> Content:
        """Add or replace the row; figures are not rounded."""
        found = [run.found for run in runs]
        own = summary({head: [each[head] for each in found] for head in found[0]})
        return {
            "folds": len(runs),
            "seed": SEED,
            "encoder": "all-MiniLM-L6-v2",
            **{key: content[key] for key in self.rows() if key in content},
            row: own,
            "published": {"micromodels": MICROMODELS, "majority": MAJORITY},
        }

    def scorer(self, row: str, training: list[Conversation]) -> MicromodelLevels:
        """Fit with cached vectors; the scorer itself encodes every text."""
        del row
        scorer = fit_levels(training)
        scorer.fitted.embed = SentenceEncoder()
        return scorer


@dataclass(frozen=True)
class FewSeeds(Method):
    """Seeds are removed step by step, and one prediction is explained."""

    name: ClassVar = page.NAME
    paper: ClassVar = "Lee et al. 2023, section 4.5, Figure 3 and Table 2"
    page: ClassVar = "micromodels"
    folds: ClassVar = tuple(range(FOLDS))

    def rows(self) -> dict[str, Row]:
        return {"few_seeds": Row("seeds kept by how often they are triggered, or at random")}

    def run(self, row: str, fold: int, inputs: Inputs) -> Content:
        del row
        part = part_of(inputs.pairs, fold)
        fitted = Micromodels(part.train, warmed(inputs.pairs), load_tokenizer())
        return {
            "study": study(fitted, part.train, part.test, fold),
            "example": in_words(explain(fitted, Turn(COUNSELLOR, EXAMPLE)), seeds=False),
            "importances": importances(fitted),
            "empty": without_rationale(inputs.pairs),
        }

    def stored(self, content: Content, row: str, runs: Sequence[Run]) -> Content:
        """Replace the file; the explained prediction is the first fold's."""
        del content, row
        first = runs[0].found
        found = {
            "folds": [run.fold for run in runs],
            "of": FOLDS,
            "seed": SEED,
            **{key: first[key] for key in ("example", "importances", "empty")},
            "rows": over_all_folds([run.found["study"] for run in runs]),
        }
        stored: Content = rounded(found)
        return stored

    def values(self, results: Path) -> dict[str, Any] | None:
        return page.values(results)
