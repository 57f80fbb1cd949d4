"""Fit what is decided after training on the validation split: temperatures and thresholds."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

from models.evaluate.metrics import iou_f1, token_f1
from models.evaluate.predict import HeadOutputs, Predictions, RationaleOutput

THRESHOLDS = [round(0.1 + 0.05 * step, 2) for step in range(17)]


@dataclass
class Calibration:
    """Temperature by head (> 0, 1 changes nothing) and rationale threshold by mechanism (0-1)."""

    temperatures: dict[str, float] = field(default_factory=dict)
    thresholds: dict[str, float] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Save as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Calibration:
        """Load what `write` saved."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def calibrate(predictions: Predictions) -> Calibration:
    """Calibration from predictions on the validation split."""
    return Calibration(
        {name: fit_temperature(outputs) for name, outputs in predictions.heads.items()},
        {name: fit_threshold(given) for name, given in predictions.rationales.items() if given},
    )


def fit_temperature(outputs: HeadOutputs) -> float:
    """The temperature, 0.2-5, that minimises the log loss (Guo et al. 2017)."""

    def log_loss(log_temperature: float) -> float:
        probabilities = outputs.probabilities(float(np.exp(log_temperature)))
        return float(-(outputs.target * np.log(probabilities + 1e-12)).sum(-1).mean())

    best = minimize_scalar(log_loss, bounds=(np.log(0.2), np.log(5.0)), method="bounded")
    return round(float(np.exp(best.x)), 4)


def fit_threshold(outputs: list[RationaleOutput]) -> float:
    """The threshold with the best mean of token F1 and IOU-F1."""
    gold = [output.gold for output in outputs]

    def quality(threshold: float) -> float:
        masks = [output.mask(threshold) for output in outputs]
        return token_f1(gold, masks) + iou_f1(gold, masks)

    return max(THRESHOLDS, key=quality)
