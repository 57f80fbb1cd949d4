"""`python -m research.instruction_seq2seq`: fine-tune encoder-decoders on a codebook's tasks.

Each model's row is added to research/results/instruction_seq2seq.json and to
docs/methods/instruction-seq2seq.md when it is finished.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from models.data.corpora import MissingCorpusError, resolve_data_dir
from research import results, resumable
from research.instruction_seq2seq import page
from research.instruction_seq2seq.instructions import PARTS, Form, InstructionError
from research.instruction_seq2seq.measure import Fold, key_of, row_of
from research.instruction_seq2seq.model import ModelError
from research.instruction_seq2seq.tasks import TaskError, find
from research.instruction_seq2seq.training import Hyperparameters, Loss
from research.second_coder import codebook
from research.second_coder.items import LOADERS, corpus_part

CORPORA = {"epitome": "epitome", "esconv": "esconv", "annomi": "annomi"}
CORPORA |= {"empathetic-intents": "empathetic_intents"}
"""The corpus that each codebook codes."""


FAILURES = (
    codebook.CodebookError,
    InstructionError,
    MissingCorpusError,
    ModelError,
    TaskError,
)


def main(
    model: Annotated[
        list[str] | None,
        typer.Option(help="Folder or hub name of a pretrained encoder-decoder; several: sizes."),
    ] = None,
    book: Annotated[
        str, typer.Option("--codebook", help="Name or file: " + " ".join(codebook.names()))
    ] = "esconv",
    corpus: Annotated[
        str | None, typer.Option(help="Default: the codebook's own. " + " ".join(LOADERS))
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option(help="Such as strategy=question; default: all.")
    ] = None,
    folds: Annotated[list[int] | None, typer.Option(help="Folds of five; default: fold 0.")] = None,
    share: Annotated[float, typer.Option(help="Share of the training sessions.")] = 1.0,
    test_share: Annotated[float, typer.Option(help="Share of the test sessions.")] = 1.0,
    before: Annotated[int, typer.Option(min=0, max=3, help="Preceding turns.")] = 3,
    after: Annotated[int, typer.Option(min=0, max=3, help="Following turns.")] = 3,
    tokens: Annotated[int, typer.Option(help="Longest input.")] = Form.tokens,
    without: Annotated[
        list[str] | None,
        typer.Option(help="Leave out a part of the instruction: " + " ".join(PARTS)),
    ] = None,
    loss: Loss = Hyperparameters.loss,
    new_tokens: Annotated[bool, typer.Option(help="New tokens stand for labels.")] = False,
    joint: Annotated[bool, typer.Option(help="One network for all tasks.")] = False,
    epochs: Annotated[int, typer.Option(min=0, help="0: zero-shot.")] = Hyperparameters.epochs,
    inputs: Annotated[int, typer.Option(help="Inputs in a step.")] = Hyperparameters.inputs,
    rate: float = Hyperparameters.rate,
    bf16: Annotated[bool, typer.Option(help="bfloat16 in the network.")] = False,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the result file.")] = results.FOLDER,
    pages: Annotated[Path, typer.Option(help="Folder of the page.")] = page.FOLDER,
    checkpoints: Annotated[
        Path, typer.Option(help="Folder from which interrupted trainings continue.")
    ] = resumable.FOLDER,
    only_page: Annotated[bool, typer.Option("--page", help="Only write the page.")] = False,
    threads: int = 2,
) -> None:
    """Fine-tune and test encoder-decoders (Xu & Jiang 2024, sections 4.3 and 6.2)."""
    if only_page:
        print(page.write(out, pages))
        return
    if not model:
        raise SystemExit("error: no model: give a folder or a hub name with --model")
    form = Form(tuple(part for part in PARTS if part not in (without or [])), before, after, tokens)
    if unknown := set(without or ()) - set(PARTS):
        known = ", ".join(PARTS)
        raise SystemExit(f"error: no part {', '.join(sorted(unknown))}; there are {known}")
    if joint and not {"intent", "options"} & set(form.parts):
        raise SystemExit("error: a joint network cannot tell tasks apart without instructions")
    chosen = Hyperparameters(epochs, inputs, rate, loss, new_tokens, bf16=bf16)
    torch.set_num_threads(threads)
    try:
        content = codebook.read(codebook.find(book))
        tasks = find(content, task)
        source = corpus or CORPORA.get(book)
        if source not in LOADERS:
            known = ", ".join(LOADERS)
            raise SystemExit(f"error: no corpus for {book}: give one of {known} with --corpus")
        data = resolve_data_dir(data_dir)
        parts = []
        for number in folds or [0]:
            tested, training = corpus_part(source, data, number)
            parts.append(Fold(number, training, tested).reduced(share, test_share))
        for name in model:
            row = row_of(
                *(name, content, tasks, parts, form, chosen), joint=joint, checkpoints=checkpoints
            )
            print(results.write_row(page.NAME, key_of(row), row, page.COMMAND, out))
            page.write(out, pages)
    except FAILURES as problem:
        raise SystemExit(f"error: {problem}") from None


if __name__ == "__main__":
    typer.run(main)
