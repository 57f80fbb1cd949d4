"""`python -m research.recipe.ablation`: ablate the training recipe, one small training per lever.

Each row trains on a share of one fold's training conversations with one setting changed and is
evaluated on the fold's test part; decisions are cross-fitted between two halves of that part. Rows
are appended to docs/evaluation/ablation.json; existing rows are skipped:

    {"lever", "description", "kept", "figures": {name: per cent}, "setting": {...}}

These small trainings are comparable with each other, not with the shipped model.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from models.data import Conversation, load_for_command
from models.data import contrast as context_contrast
from models.data.corpora import resolve_data_dir
from models.data.split import fold_of, held_out, key_of, split_fold
from models.evaluate.folds import VIEWS, Fold
from models.evaluate.predict import predict_views
from models.fit import train
from models.fit.calibrate import Calibration
from models.fit.train import REPEATS, Recipe
from models.model import multitask
from models.model.batches import ALONE, Window, tokenise
from models.model.encoder import ADAPTED
from models.model.frozen import LowerStates
from models.pages import document
from models.pages.report import CrossValidation
from models.probes import report as probes
from models.probes.cases import cases
from models.probes.scorers import ModelLevels

FILE = document.FOLDER / "ablation.json"
FOLDS = 5
PROBES = 200
"""Probe cases per condition and mechanism."""
HALVES = 2


@dataclass(frozen=True)
class Lever:
    """One change to the recipe.

    `kept` marks levers that the recipe already has: their row shows the loss without them. `recipe`
    are parameters of `models.fit.train.Recipe`; `corpora` are the training corpora (default: all);
    `view` is the context used for evaluation; `adapted` is a file of weights to start from, which
    another command writes. For each seed in `orders` the row is trained again from the same start
    in another data order, and the averaged weights are evaluated (Wortsman et al. 2022, "model
    soups").
    """

    name: str
    description: str
    kept: bool = False
    recipe: dict[str, Any] = field(default_factory=dict)
    corpora: tuple[str, ...] | None = None
    view: str = "final"
    adapted: Path | None = None
    orders: tuple[int, ...] = ()


LEVERS = (
    Lever("recipe", "the recipe as it is, at this size", kept=True),
    Lever("cross_entropy", "no class weights in the loss", recipe={"loss": "cross_entropy"}),
    Lever("focal", "focal loss", recipe={"loss": "focal"}),
    Lever("ldam", "margins by label frequency (LDAM)", recipe={"loss": "ldam"}),
    Lever("ordinal", "ordinal loss for all heads", recipe={"loss": "ordinal"}),
    Lever("no_contrast", "without context contrast", kept=True, recipe={"contrast": False}),
    Lever(
        "no_context_gradients",
        "contrast without gradients through the context",
        kept=True,
        recipe={"through_context": ()},
    ),
    Lever("slow_heads", "head learning rate 3e-4 instead of 1e-3", recipe={"head_rate": 3e-4}),
    Lever("longer", "twice the epochs", recipe={"epochs": 2}),
    Lever(
        "epitome_only",
        "EPITOME alone instead of multi-task training",
        kept=True,
        recipe={"contrast": False},
        corpora=("epitome",),
    ),
    Lever(
        "esconv_only",
        "ESConv alone instead of multi-task training",
        kept=True,
        recipe={"contrast": False},
        corpora=("esconv",),
    ),
    Lever(
        "annomi_only",
        "AnnoMI alone instead of multi-task training",
        kept=True,
        recipe={"contrast": False},
        corpora=("annomi",),
    ),
    Lever(
        "no_context",
        "trained and evaluated without context",
        kept=True,
        recipe={"contrast": False, "window": ALONE},
        view="alone",
    ),
    Lever(
        "preceding_only",
        "trained and evaluated with preceding turns only",
        kept=True,
        recipe={"window": Window(after=0.0, context=0.9)},
        view="provisional",
    ),
    Lever("all_layers", "no frozen layers", recipe={"frozen_layers": 0}),
    Lever(
        "masked_language",
        "starts from masked-language pre-training on the corpora; no frozen layers",
        recipe={"frozen_layers": 0},
        adapted=ADAPTED,
    ),
    Lever("longer_inputs", "320 tokens a turn", recipe={"max_tokens": 320}),
    Lever("shorter_inputs", "96 tokens a turn", recipe={"max_tokens": 96}),
    Lever(
        "ensemble",
        "weights averaged over three trainings with different data orders",
        orders=(18, 19),
    ),
    Lever("epitome_once", "EPITOME once per epoch", recipe={"repeats": REPEATS | {"epitome": 1}}),
    Lever(
        "epitome_thrice", "EPITOME thrice per epoch", recipe={"repeats": REPEATS | {"epitome": 3}}
    ),
)
BY_NAME = {lever.name: lever for lever in LEVERS}


def chosen(conversations: list[Conversation], share: float, seed: int) -> list[Conversation]:
    """Sample a share of the conversations, determined by their keys and the seed."""
    return [
        item
        for item in conversations
        if fold_of(f"ablation:{key_of(item)}", seed, 1000) < 1000 * share
    ]


def trained(
    lever: Lever, training: list[Conversation], recipe: Recipe, data_dir: Path
) -> tuple[multitask.MultitaskModel, Any]:
    """Train a model with the lever; return it with its tokenizer."""
    if lever.corpora is not None:
        training = [item for item in training if item.corpus in lever.corpora]
        own = {name: recipe.repeats[name] for name in lever.corpora}
        recipe = replace(recipe, repeats=own)
    if recipe.contrast:
        training = training + context_contrast.load(training, data_dir, recipe.seed)
    found = []
    for order in (recipe.seed, *lever.orders):
        torch.manual_seed(recipe.seed)
        model, tokenizer = multitask.from_base(adapted=lever.adapted)
        model.encoder.freeze_layers(recipe.frozen_layers)
        segments = tokenise(training, tokenizer, recipe.max_tokens)
        LowerStates().fill(segments, model.encoder)
        train.fit(model, segments, replace(recipe, seed=order))
        found.append(model)
    return averaged(found).eval(), tokenizer


def averaged(models: list[multitask.MultitaskModel]) -> multitask.MultitaskModel:
    """Average the models' weights into the first model."""
    states = [model.state_dict() for model in models]
    with torch.no_grad():
        for name, first in states[0].items():
            if first.is_floating_point():
                first.copy_(torch.stack([state[name] for state in states]).mean(0))
    return models[0]


def measured(
    lever: Lever,
    model: multitask.MultitaskModel,
    tokenizer: Any,
    test: list[Conversation],
    recipe: Recipe,
    data_dir: Path,
) -> dict[str, float]:
    """Evaluate in per cent, leaving out heads that the lever does not train.

    The context probe uses the most probable levels.
    """
    halves = []
    for half in range(HALVES):
        own = [c for c in test if fold_of(f"half:{key_of(c)}", recipe.seed, HALVES) == half]
        segments = tokenise(own, tokenizer, recipe.max_tokens)
        halves.append(Fold(half, predict_views(model, segments, VIEWS, tokenizer)))
    results = CrossValidation(halves, HALVES)
    figures: dict[str, float] = {}
    corpora = lever.corpora or ("epitome", "esconv", "annomi", "empathetic_intents")
    if "epitome" in corpora:
        levels = results.levels()["views"][lever.view]["shipped"]
        for key, words in (("accuracy", "level accuracy"), ("macro_f1", "level macro-F1")):
            figures[f"{words}, mean"] = levels["mean"][key]["pooled"]
        spans = results.rationales()["rows"].values()
        for key, words in (("token_f1", "token F1"), ("iou_f1", "IOU-F1")):
            figures[f"{words}, mean"] = sum(row[key]["pooled"] for row in spans) / len(spans)
    if "esconv" in corpora:
        tasks = results.strategies()["views"][lever.view]["shipped"]["mean"]
        figures["strategies macro-F1"] = tasks["f1"]["pooled"]
        figures["strategies accuracy"] = tasks["accuracy"]["pooled"]
    if "annomi" in corpora:
        heads = results.heads(("behaviour", "talk_type"))["views"][lever.view]["shipped"]
        for name, row in heads.items():
            figures[f"{name} macro-F1"] = row["macro_f1"]["pooled"]
    if lever.corpora is None and lever.view == "final":
        probed = cases(data_dir, [], PROBES, recipe.seed)
        found = probes.measure(ModelLevels(model, tokenizer, Calibration()), probed)
        figures["probe: fooled"] = found["fooled"]["share"]
        figures["probe: recall"] = found["recall"]["share"]
    return {name: round(100 * value, 2) for name, value in figures.items()}


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read the existing rows."""
    if not path.is_file():
        return []
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def main(
    only: Annotated[
        list[str] | None, typer.Option(help="These levers: " + " ".join(BY_NAME))
    ] = None,
    epochs: Annotated[int, typer.Option(help="Epochs, the same for every row.")] = 1,
    fold: Annotated[int, typer.Option(help="Fold to train and test on.")] = 0,
    share: Annotated[float, typer.Option(help="Share of the training conversations.")] = 0.5,
    seed: int = 17,
    threads: int = 2,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="File to append rows to.")] = FILE,
) -> None:
    """Train and evaluate the levers one after the other."""
    torch.set_num_threads(threads)
    if unknown := set(only or ()) - set(BY_NAME):
        raise SystemExit(f"error: no lever {', '.join(sorted(unknown))}")
    conversations = load_for_command(data_dir)
    training = chosen(split_fold(conversations, fold, FOLDS, seed)["train"], share, seed)
    test = held_out(conversations, fold, FOLDS, seed)
    setting = {"epochs": epochs, "fold": fold, "share": share, "seed": seed}
    for lever in LEVERS:
        if only and lever.name not in only:
            continue
        known = {(row["lever"], json.dumps(row.get("setting"))) for row in read_rows(out)}
        if (lever.name, json.dumps(setting)) in known:
            print(f"{lever.name}: there already", flush=True)
            continue
        if lever.adapted is not None and not lever.adapted.is_file():
            print(f"{lever.name}: {lever.adapted} is missing; models/README.md has its command")
            continue
        recipe = Recipe(**{"epochs": epochs, "seed": seed} | lever.recipe)
        model, tokenizer = trained(lever, training, recipe, resolve_data_dir(data_dir))
        row = {
            "lever": lever.name,
            "description": lever.description,
            "kept": lever.kept,
            "figures": measured(lever, model, tokenizer, test, recipe, resolve_data_dir(data_dir)),
            "setting": setting,
        }
        out.parent.mkdir(parents=True, exist_ok=True)
        document.write_json(out, [*read_rows(out), row])
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    typer.run(main)
