"""`python -m research.bi_encoder`: train and test EPITOME's bi-encoder on our folds.

One row of the paper's Table 5 after the other (`--only`), each added to
research/results/bi_encoder.json and to docs/methods/baselines.md when it is finished.
"""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from models.data import Conversation, load_for_command
from models.labels import RATIONALE_ORDER
from models.model.batches import overlaps
from models.model.encoder import ADAPTED, encoder_name
from models.pages import report
from research import baselines_page, results, resumable
from research.bi_encoder.design import DESIGNS, Design
from research.bi_encoder.training import DEFAULTS, Fitted, Reading, fit
from research.fine_tuning import Hyperparameters, parameters_of
from research.folds import Part
from research.folds import parts as parts_of

NAME, COMMAND = "bi_encoder", "python -m research.bi_encoder"


def rationale_figures(fitted: Fitted, test: list[Conversation], reading: Reading) -> dict[str, Any]:
    """Token and span scores by mechanism over the responses whose phrases were found.

    Tokens beyond the encoder's length are outside every predicted rationale.
    """
    found: dict[str, tuple[list[Any], list[Any]]] = {head: ([], []) for head in RATIONALE_ORDER}
    for pair, mask in zip(test, reading.masks, strict=True):
        turn = pair.turns[-1]
        offsets = fitted.tokenizer.encode(turn.text, add_special_tokens=False).offsets
        for column, head in enumerate(RATIONALE_ORDER):
            if head not in turn.rationales:
                continue
            spans = turn.rationales[head]
            given = np.zeros(len(offsets), np.int64)
            given[: len(mask)] = mask[:, column]
            found[head][0].append(np.array([overlaps(o, spans) for o in offsets], np.int64))
            found[head][1].append(given)
    return {head: report.rationale(*lists) for head, lists in found.items()}


def row_of(
    design: Design,
    parts: list[Part],
    chosen: Hyperparameters,
    encoder: str | None,
    checkpoints: Path | None = None,
) -> dict[str, Any]:
    """Train and test a design on each fold."""
    gold, given, spans = [], [], []
    started = time.monotonic()
    fitted: Fitted | None = None
    for part in parts:
        print(f"fold {part.number}: {len(part.train)} pairs, {design.words}", flush=True)
        fitted = fit(part.train, design, chosen, encoder, checkpoints)
        reading = fitted.read(part.test)
        gold.append(part.gold)
        given.append(reading.levels)
        spans.append(rationale_figures(fitted, part.test, reading))
    heads = results.level_figures(gold, given)
    if design.rationale_weight:
        for head in heads:
            each = [found[head] for found in spans]
            means = {key: float(np.mean([one[key] for one in each])) for key in each[0]}
            heads[head].update(report.over_folds(each, means))
    sizes = [parameters_of(model) for model in fitted.models] if fitted else []
    return {
        "words": design.words,
        "context": design.seeker_words,
        "encoder": encoder_name(encoder),
        "parameters": sum(size for size, _ in sizes),
        "trained": sum(size for _, size in sizes),
        "folds": [part.number for part in parts],
        "pairs": [len(part.train) for part in parts],
        "minutes": (time.monotonic() - started) / 60,
        "setting": asdict(chosen) | {"lambda": design.rationale_weight},
        "heads": heads,
    }


def main(
    only: Annotated[list[str] | None, typer.Option(help="These rows: " + " ".join(DESIGNS))] = None,
    folds: Annotated[list[int] | None, typer.Option(help="Folds of five; default: fold 0.")] = None,
    lambda_rationales: Annotated[
        float | None, typer.Option(help="Weight of the rationale loss instead of the row's.")
    ] = None,
    epochs: int = DEFAULTS.epochs,
    encoder_rate: float = DEFAULTS.encoder_rate,
    frozen_layers: int = DEFAULTS.frozen_layers,
    encoder: Annotated[
        str | None, typer.Option(help="Folder or hub name of another pretrained encoder.")
    ] = None,
    bf16: Annotated[bool, typer.Option(help="bfloat16 in the encoders.")] = True,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the result files.")] = results.FOLDER,
    pages: Annotated[Path, typer.Option(help="Folder of the page.")] = baselines_page.FOLDER,
    checkpoints: Annotated[
        Path, typer.Option(help="Folder from which interrupted trainings continue.")
    ] = resumable.FOLDER,
    threads: int = 2,
) -> None:
    """Train and test rows of EPITOME's Table 5."""
    torch.set_num_threads(threads)
    if unknown := set(only or ()) - set(DESIGNS):
        raise SystemExit(
            f"error: no row {', '.join(sorted(unknown))}; there are {', '.join(DESIGNS)}"
        )
    chosen = Hyperparameters(
        epochs=epochs, encoder_rate=encoder_rate, frozen_layers=frozen_layers, bf16=bf16
    )
    parts = parts_of(load_for_command(data_dir), folds or [0])
    for key in only or DESIGNS:
        design = DESIGNS[key]
        if lambda_rationales is not None:
            design = replace(design, rationale_weight=lambda_rationales)
        if design.adapted and not ADAPTED.is_file():
            print(f"{key}: {ADAPTED} is missing; python -m research.masked_language writes it")
            continue
        row = row_of(design, parts, chosen, encoder, checkpoints)
        print(results.write_row(NAME, key, row, COMMAND, out))
        baselines_page.write(out, folder=pages)


if __name__ == "__main__":
    typer.run(main)
