"""Fit temperatures, biases, thresholds and abstention on out-of-fold predictions.

    probabilities   softmax(logits / temperature + bias)                 every head
    level           argmax(log p + offset); the offset undoes the bias   level heads
    strategy        p >= threshold of the strategy                       each strategy separately
    rationale       sentence score >= threshold, where level > 0         mechanisms
    abstains        largest probability < abstain_below                  every head

`python -m models.fit.calibrate --folds build/folds --out build/model/calibration.json` fits on all
out-of-fold predictions, for the bundle. In the evaluation, each fold's calibration is fitted on the
other folds.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from scipy.ndimage import uniform_filter
from scipy.optimize import minimize

from models.data import load_for_command
from models.evaluate import metrics
from models.evaluate.folds import Fold, load_folds
from models.evaluate.predict import (
    Floats,
    HeadOutputs,
    Ints,
    Predictions,
    RationaleOutput,
    softmax,
)
from models.labels import HEADS_BY_NAME, OUTCOME_HEADS, RATED, STRATEGIES

THRESHOLDS = [round(0.1 + 0.05 * step, 2) for step in range(17)]
STRATEGY_GRID = np.arange(0.04, 0.961, 0.02)
TASKS = STRATEGIES[:-1]
"""The seven binary tasks of Xu & Jiang, section 5.1, which exclude "others"."""
RIGHT_SHARE, LARGEST_ABSTENTION = 0.90, 0.30
"""Abstention target: this accuracy on the answered turns, unless more turns would abstain."""
BIAS_SPREAD = 0.25
"""Standard deviation of the normal prior on biases, which keeps heads with few turns near 0."""
FITTED_ON = ("final", "provisional")
"""The service scores both stages with one calibration."""


@dataclass
class Calibration:
    """Per head: temperature (> 0), logit bias, level offsets, abstention threshold.

    `thresholds` are rationale thresholds (0-1, by mechanism), `label_thresholds` those of each
    strategy as a binary task. A head that is missing is left uncalibrated.
    """

    temperatures: dict[str, float] = field(default_factory=dict)
    biases: dict[str, list[float]] = field(default_factory=dict)
    offsets: dict[str, list[float]] = field(default_factory=dict)
    label_thresholds: dict[str, dict[str, float]] = field(default_factory=dict)
    thresholds: dict[str, float] = field(default_factory=dict)
    abstain_below: dict[str, float] = field(default_factory=dict)

    def probabilities(self, head: str, logits: Floats) -> Floats:
        """Calibrated probabilities [n, labels] from a head's logits."""
        bias = np.array(self.biases.get(head, 0.0))
        return softmax(logits / self.temperatures.get(head, 1.0) + bias)

    def labels(self, head: str, probabilities: Floats) -> Ints:
        """Predicted labels [n]: the most probable one, after adding a level head's offsets."""
        offsets = np.array(self.offsets.get(head, 0.0))
        return np.asarray((np.log(probabilities + 1e-12) + offsets).argmax(-1))

    def strategies(self, probabilities: Floats) -> Ints:
        """Binary predictions for the seven tasks, [n, 7]."""
        thresholds = self.label_thresholds.get("strategy", {})
        limits = np.array([thresholds.get(task, 0.5) for task in TASKS])
        return (probabilities[:, : len(TASKS)] >= limits).astype(int)

    def masks(self, head: str, rationales: list[RationaleOutput], levels: Ints) -> list[Ints]:
        """Rationale masks of the responses; `levels` [rows of the head]."""
        threshold = self.thresholds.get(head, 0.5)
        return [mask(item, threshold, int(levels[item.row])) for item in rationales]

    def copy_from(self, other: Calibration, heads: Sequence[str]) -> None:
        """Copy another calibration's values for these heads, where it has any."""
        for item in fields(self):
            known = getattr(other, item.name)
            getattr(self, item.name).update({name: known[name] for name in heads if name in known})

    def write(self, path: Path) -> None:
        """Save as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Calibration:
        """Load a file written by `write`; unknown keys are ignored."""
        content = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            **{item.name: content[item.name] for item in fields(cls) if item.name in content}
        )


def mask(item: RationaleOutput, threshold: float, level: int) -> Ints:
    """Mask of the sentences that reach the threshold; empty where the level is "none"."""
    return (item.scores >= threshold).astype(int) * int(level > 0)


def calibrate(parts: Sequence[Predictions], copies: int = 1) -> Calibration:
    """Fit a calibration on the predictions of one or more models, each on turns it did not see.

    `copies` is how often each turn occurs among them, in one view or another.
    """
    result = Calibration()
    for name in parts[0].heads:
        outputs = joined([part.heads[name] for part in parts])
        # A rating is a share of "yes": calibrate its mean, not the nearer label.
        result.temperatures[name], result.biases[name] = (
            fit_to(outputs.logits, outputs.target, copies)
            if name == RATED
            else fit_temperature_and_bias(outputs, copies)
        )
        probabilities = result.probabilities(name, outputs.logits)
        if HEADS_BY_NAME[name].kind == "level":
            result.offsets[name] = undo_bias(result.biases[name])
        if name == "strategy":
            result.label_thresholds[name] = {
                task: fit_label_threshold(probabilities[:, index], outputs.gold == index)
                for index, task in enumerate(TASKS)
            }
        right = result.labels(name, probabilities) == outputs.gold
        result.abstain_below[name] = fit_abstention(probabilities.max(-1), right)
    for name in parts[0].rationales:
        items, levels = [], []
        for part in parts:
            given = result.probabilities(name, part.heads[name].logits)
            shown = result.labels(name, given)
            items += part.rationales[name]
            levels += [int(shown[item.row]) for item in part.rationales[name]]
        if items:
            result.thresholds[name] = fit_threshold(items, levels)
    return result


def fitted(folds: list[Fold]) -> Calibration:
    """Fit a calibration on all given folds' predictions, in the views of the service."""
    parts = [fold.views[view] for fold in folds for view in FITTED_ON]
    return calibrate(parts, copies=len(FITTED_ON))


def crossfitted(folds: list[Fold]) -> list[Calibration]:
    """For each fold, the calibration fitted on the others; empty if there is only one fold.

    No label of fold k influences how fold k is scored.
    """
    if len(folds) < 2:
        return [Calibration() for _ in folds]
    return [fitted([other for other in folds if other is not fold]) for fold in folds]


def joined(parts: Sequence[HeadOutputs]) -> HeadOutputs:
    """Concatenate the outputs."""
    return HeadOutputs(
        np.concatenate([part.logits for part in parts]),
        np.concatenate([part.target for part in parts]),
    )


def fit_temperature_and_bias(outputs: HeadOutputs, copies: int = 1) -> tuple[float, list[float]]:
    """Temperature (0.2-5) and bias [labels] that minimise the log loss of the gold labels.

    The bias undoes the effect of class weights on label frequencies (Alexandari et al. 2020,
    bias-corrected temperature scaling). Its mean is 0.
    """
    onehot = np.eye(outputs.logits.shape[1])[outputs.gold]
    return fit_to(outputs.logits, onehot, copies)


def fit_to(logits: Floats, target: Floats, copies: int = 1) -> tuple[float, list[float]]:
    """As `fit_temperature_and_bias`, for distributions [n, labels] instead of gold labels."""
    rows, labels = logits.shape
    pull = copies / (BIAS_SPREAD**2 * rows)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        sharpness, bias = np.exp(-parameters[0]), parameters[1:]
        probabilities = softmax(logits * sharpness + bias)
        gap = (probabilities - target) / rows
        value = -(target * np.log(probabilities + 1e-12)).sum() / rows + pull * (bias @ bias) / 2
        slope = -sharpness * float((gap * logits).sum())
        return float(value), np.array([slope, *(gap.sum(0) + pull * bias)])

    bounds = [(np.log(0.2), np.log(5.0)), *[(-5.0, 5.0)] * labels]
    best = minimize(loss, np.zeros(1 + labels), jac=True, bounds=bounds, method="L-BFGS-B").x
    bias = best[1:] - best[1:].mean()
    return round(float(np.exp(best[0])), 4), [round(float(value), 4) for value in bias]


def undo_bias(bias: Sequence[float]) -> list[float]:
    """Log-probability offsets that undo a calibration's bias, the first of them 0.

    Levels are then those of the trained model, whose class weights favour macro-F1.
    """
    return [round(bias[0] - value, 4) for value in bias]


def fit_label_threshold(probability: Floats, gold: Ints) -> float:
    """Threshold from which a label counts as present, chosen for the best binary macro-F1."""
    quality = [metrics.binary_task(gold, probability >= limit).f1 for limit in STRATEGY_GRID]
    best = int(uniform_filter(np.array(quality), 3, mode="nearest").argmax())
    return round(float(STRATEGY_GRID[best]), 2)


def fit_abstention(confidence: Floats, right: Ints) -> float:
    """Lowest threshold at which nine tenths of the answered turns are correct.

    At most three tenths of the turns abstain; 0 answers everything.
    """
    points = metrics.risk_coverage(confidence, right.astype(bool))
    allowed = [point for point in points if point.coverage >= 1 - LARGEST_ABSTENTION]
    for point in allowed:
        if point.accuracy >= RIGHT_SHARE:
            return 0.0 if point is points[0] else _rounded_down(point.threshold)
    return _rounded_down(allowed[-1].threshold)


def _rounded_down(threshold: float) -> float:
    return float(np.floor(threshold * 1e4) / 1e4)


def fit_threshold(items: list[RationaleOutput], levels: list[int]) -> float:
    """The threshold with the highest sum of token F1 and IOU-F1."""
    shown = np.array(levels) > 0
    quality = np.array([_qualities(item) for item in items])
    total = quality[shown, 1:].sum(0) + quality[~shown, 0].sum()
    return THRESHOLDS[int(total.argmax())]


@functools.cache
def _qualities(item: RationaleOutput) -> list[float]:
    """Token F1 plus IOU-F1 of a response without a rationale, then for every threshold."""
    masks = [mask(item, 1.0, 0), *(mask(item, threshold, 1) for threshold in THRESHOLDS)]
    return [
        metrics.response_token_f1(item.gold, given) + metrics.response_iou_f1(item.gold, given)
        for given in masks
    ]


def main(
    folds: Annotated[Path, typer.Option(help="Folder with one model per fold.")] = Path(
        "build/folds"
    ),
    out: Annotated[Path, typer.Option(help="File to write the calibration to.")] = Path(
        "build/model/calibration.json"
    ),
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    threads: int = 2,
) -> None:
    """Fit on every fold's out-of-fold predictions, for a model to be shipped."""
    torch.set_num_threads(threads)
    loaded = load_folds(folds, load_for_command(data_dir))
    if not loaded:
        raise SystemExit(f"error: {folds} contains no trained fold")
    result = fitted(loaded)
    if out.is_file():
        # Outcome heads have no turn labels: keep the values that another command fitted.
        result.copy_from(Calibration.read(out), OUTCOME_HEADS)
    result.write(out)
    print(f"fitted on {len(loaded)} folds, written to {out}")


if __name__ == "__main__":
    typer.run(main)
