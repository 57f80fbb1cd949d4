"""Encoder-decoders that are fine-tuned to answer a codebook's questions (Xu & Jiang 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from models.pages import report
from research.folds import FOLDS, SEED
from research.instruction_seq2seq import page
from research.instruction_seq2seq.instructions import PARTS, Form, InstructionError, Part
from research.instruction_seq2seq.measure import Fold, Tested, by_task, key_of, run
from research.instruction_seq2seq.model import ModelError, name_of
from research.instruction_seq2seq.tasks import TaskError, find
from research.instruction_seq2seq.training import Hyperparameters
from research.method import Content, Inputs, Method, MethodError, Row, Run
from research.second_coder import codebook
from research.second_coder.items import LOADERS, corpus_part

CORPORA = {each: each.replace("-", "_") for each in codebook.names()}
"""The corpus that a codebook codes, where there is one of its name."""
Turns = Annotated[int, msgspec.Meta(ge=0, le=3)]


@dataclass(frozen=True)
class InstructionMethod(Hyperparameters, Method):
    """A row is a codebook, by its name or file; `model` the folder or hub name of a network.

    `corpus` is needed for a codebook of your own; `task` chooses some of its tasks; `without`
    leaves out parts of the instruction; `joint`: one network learns all tasks.
    """

    name: ClassVar = page.NAME
    paper: ClassVar = "Xu & Jiang 2024, sections 4.3 and 6.2"
    page: ClassVar = "instruction-seq2seq"

    model: str | None = None
    corpus: str | None = None
    task: tuple[str, ...] = ()
    share: float = 1.0
    test_share: float = 1.0
    before: Turns = 3
    after: Turns = 3
    tokens: int = Form.tokens
    without: tuple[Part, ...] = ()
    joint: bool = False

    def rows(self) -> dict[str, Row]:
        known = [each for each in codebook.names() if CORPORA[each] in LOADERS]
        return {each: self.row(each) for each in known}

    def row(self, key: str) -> Row:
        """A codebook's title.

        Raises:
            MethodError: there is no such codebook, or it is not valid.
        """
        try:
            return Row(codebook.read(codebook.find(key)).title)
        except codebook.CodebookError as problem:
            raise MethodError(str(problem)) from None

    @property
    def form(self) -> Form:
        """The form of the inputs.

        Raises:
            MethodError: a joint network would not be told which task is asked.
        """
        parts = tuple(part for part in PARTS if part not in self.without)
        if self.joint and not {"intent", "options"} & set(parts):
            raise MethodError("a joint network cannot tell tasks apart without instructions")
        return Form(parts, self.before, self.after, self.tokens)

    def run(self, row: str, fold: int, inputs: Inputs) -> Tested:
        form, corpus = self.form, self.corpus or CORPORA.get(row)
        if not self.model:
            raise MethodError("no model: give a folder or a hub name with --set model=")
        if corpus not in LOADERS:
            known = ", ".join(LOADERS)
            raise MethodError(f"no corpus for {row}: give one of {known} with --set corpus=")
        book = codebook.read(codebook.find(row))
        try:
            tasks = find(book, list(self.task))
            test, training = corpus_part(corpus, inputs.folder, fold)
            part = Fold(fold, training, test).reduced(self.share, self.test_share)
            return run(
                *(self.model, book, tasks, part, form, self),
                joint=self.joint,
                checkpoints=inputs.checkpoints,
            )
        except (InstructionError, ModelError, TaskError) as problem:
            raise MethodError(str(problem)) from None

    def stored(self, content: Content, row: str, runs: Sequence[Run]) -> Content:
        """Add or replace the model's row, named by all that an ablation changes."""
        assert self.model is not None  # noqa: S101 (it ran)
        tasks = by_task([run.found for run in runs])
        found = {
            "model": name_of(self.model),
            "parameters": runs[-1].found.parameters,
            "book": self.row(row).words,
            "instruction": self.form.words,
            "before": self.before,
            "after": self.after,
            "joint": self.joint,
            "folds": [run.fold for run in runs],
            "setting": {each.name: getattr(self, each.name) for each in fields(Hyperparameters)},
            "tasks": tasks,
            "mean": report.mean_of_rows(list(tasks.values())),
        }
        rows = content.get("rows", {}) | {key_of(found): report.rounded(found)}
        return {"of": FOLDS, "seed": SEED} | content | {"rows": rows}

    def values(self, results: Path) -> dict[str, Any]:
        return page.values(results)
