"""Measures a second pretrained encoder: `python -m research.recipe.encoder_mean --encoder FOLDER`.

On each fold, two models learn EPITOME's levels alone, by the recipe of `models.fit.train` without
contrast: one from the recipe's encoder, one from another. Figures are of each model and of the mean
of their log-probabilities. The mean is the teacher that distilling the two would use, so it bounds
what a student can learn from it. Writes docs/evaluation/encoder_mean.json; the outputs of trained
models are kept in build/encoder_mean, where a second run continues.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.metrics import accuracy_score, f1_score

from models.data import load_for_command
from models.data.corpora import Conversation
from models.data.split import held_out, split_fold
from models.evaluate.folds import VIEWS
from models.evaluate.predict import Predictions, predict_views
from models.evaluate.resampling import interval, spearman
from models.fit.train import REPEATS, Recipe, fit
from models.model import multitask
from models.model.batches import tokenise
from models.model.encoder import encoder_name
from models.model.frozen import LowerStates
from models.pages import document
from stream_app.contracts.scores import MECHANISMS

FILE = document.FOLDER / "encoder_mean.json"
FOLDS = 5
FROZEN_SHARE = 1 / 3
"""Share of the layers that is frozen; the recipe freezes two of six."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Outputs:
    """Log-probabilities [responses, 3, 3] (mechanism, level) and labels [responses, 3]."""

    log_probabilities: Floats
    gold: Ints

    @property
    def expected(self) -> Floats:
        """Expected total of the three levels, [responses], from 0 to 6."""
        found: Floats = (softmax(self.log_probabilities, -1) @ np.arange(3.0)).sum(1)
        return found

    @property
    def total(self) -> Ints:
        """Labelled total, [responses], from 0 to 6."""
        found: Ints = self.gold.sum(1)
        return found


def of_levels(predictions: Predictions) -> Outputs:
    """The outputs of the heads of the three mechanisms."""
    heads = predictions.heads
    logits = np.stack([heads[name].logits for name in MECHANISMS], 1)
    gold = np.stack([heads[name].gold for name in MECHANISMS], 1)
    return Outputs(log_softmax(logits.astype(np.float64), -1), gold.astype(np.int64))


def averaged(members: list[Outputs]) -> Outputs:
    """The mean of several models' log-probabilities for the same responses."""
    return Outputs(np.mean([each.log_probabilities for each in members], 0), members[0].gold)


def joined(parts: list[Outputs]) -> Outputs:
    """The outputs of several folds, one after the other."""
    return Outputs(
        np.concatenate([each.log_probabilities for each in parts]),
        np.concatenate([each.gold for each in parts]),
    )


def trained(
    conversations: list[Conversation], encoder: str | None, fold: int, recipe: Recipe
) -> Outputs:
    """Train on the fold's EPITOME training pairs; score its test pairs."""
    torch.manual_seed(recipe.seed)
    model, tokenizer = multitask.from_base(encoder)
    model.encoder.freeze_layers(round(FROZEN_SHARE * len(model.encoder.layers)))
    training = split_fold(conversations, fold, FOLDS, recipe.seed)["train"]
    segments = tokenise(training, tokenizer, recipe.max_tokens)
    LowerStates().fill(segments, model.encoder, bf16=recipe.bf16)
    fit(model, segments, recipe)
    test = held_out(conversations, fold, FOLDS, recipe.seed)
    segments = tokenise(test, tokenizer, recipe.max_tokens)
    return of_levels(predict_views(model.eval(), segments, VIEWS, tokenizer)["final"])


def figures(outputs: Outputs) -> dict[str, Any]:
    """Spearman of the expected with the labelled total; means over the mechanisms."""
    found = outputs.log_probabilities.argmax(-1)
    pairs = [(outputs.gold[:, i], found[:, i]) for i in range(len(MECHANISMS))]
    return {
        "answers": len(outputs.gold),
        "spearman": interval(
            np.arange(len(outputs.gold)),
            lambda rows: spearman(outputs.expected[rows], outputs.total[rows].astype(float)),
        ),
        "accuracy": mean(float(accuracy_score(*pair)) for pair in pairs),
        "macro_f1": mean(float(f1_score(*pair, average="macro")) for pair in pairs),
    }


def gain(over: Outputs, other: Outputs) -> dict[str, Any]:
    """Spearman of `other` minus that of `over`, on the same resamples."""
    total = over.total.astype(float)
    return interval(
        np.arange(len(total)),
        lambda rows: (
            spearman(other.expected[rows], total[rows]) - spearman(over.expected[rows], total[rows])
        ),
    )


def kept(path: Path) -> Outputs | None:
    """Outputs of an earlier run, if there are any."""
    if not path.is_file():
        return None
    with np.load(path) as stored:
        return Outputs(stored["log_probabilities"], stored["gold"])


def main(
    encoder: Annotated[str, typer.Option(help="Folder or hub name of the second encoder.")],
    first: Annotated[
        str | None, typer.Option(help="The first encoder; default: the recipe's.")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    folds: Annotated[list[int] | None, typer.Option(help="Folds of five; default: all.")] = None,
    bf16: Annotated[bool, typer.Option(help="bfloat16 in the encoder.")] = True,
    threads: int = 2,
    cache: Annotated[Path, typer.Option(help="Folder for outputs.")] = Path("build/encoder_mean"),
    out: Annotated[Path, typer.Option(help="File to write.")] = FILE,
) -> None:
    """Train both encoders on each fold and write the figures."""
    torch.set_num_threads(threads)
    recipe = Recipe(contrast=False, repeats={"epitome": REPEATS["epitome"]}, bf16=bf16)
    conversations = [c for c in load_for_command(data_dir) if c.corpus == "epitome"]
    chosen = folds or list(range(FOLDS))
    encoders = {encoder_name(name): name for name in (first, encoder)}
    by_fold: list[list[Outputs]] = []
    for fold in chosen:
        by_fold.append([])
        for name, start in encoders.items():
            path = cache / f"{fold}-{name}.npz"
            found = kept(path)
            if found is None:
                found = trained(conversations, start, fold, recipe)
                cache.mkdir(parents=True, exist_ok=True)
                np.savez(path, log_probabilities=found.log_probabilities, gold=found.gold)
            by_fold[-1].append(found)
    alone = [joined([members[i] for members in by_fold]) for i in range(len(encoders))]
    both = joined([averaged(members) for members in by_fold])
    rows = dict(zip(encoders, map(figures, alone), strict=True)) | {"mean of both": figures(both)}
    result = {"folds": chosen, "rows": rows, "gain": gain(alone[0], both)}
    document.write_json(out, result)
    document.write(out.parent)
    for name, row in rows.items():
        print(f"{name}: Spearman {row['spearman']['value']:.3f}, macro-F1 {row['macro_f1']:.3f}")


if __name__ == "__main__":
    typer.run(main)
