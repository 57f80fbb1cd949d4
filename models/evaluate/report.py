"""Metrics of a set of predictions as a plain dictionary, and as tables for people."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.calibrate import Calibration
from models.evaluate import metrics
from models.evaluate.predict import Predictions

Metrics = dict[str, dict[str, Any]]
SHOWN = ("majority", "accuracy", "macro_f1", "ece_before", "ece_after")


def measure(predictions: Predictions, calibration: Calibration | None = None) -> Metrics:
    """Metrics by head; shares are 0-1, `n` counts turns.

    `majority` is the accuracy of always giving the commonest label.
    """
    calibration = calibration or Calibration()
    report: Metrics = {}
    for name, outputs in predictions.heads.items():
        temperature = calibration.temperatures.get(name, 1.0)
        gold = outputs.gold
        report[name] = {
            "n": len(gold),
            "majority": float(np.bincount(gold).max() / len(gold)),
            "accuracy": metrics.accuracy(gold, outputs.predicted),
            "macro_f1": metrics.macro_f1(gold, outputs.predicted),
            "ece_before": metrics.expected_calibration_error(outputs.probabilities(), gold),
            "ece_after": metrics.expected_calibration_error(
                outputs.probabilities(temperature), gold
            ),
        }
        responses = predictions.rationales.get(name)
        if responses:
            threshold = calibration.thresholds.get(name, 0.5)
            spans = [response.gold for response in responses]
            masks = [response.mask(threshold) for response in responses]
            report[name]["rationale"] = {
                "n": len(responses),
                "token_f1": metrics.token_f1(spans, masks),
                "token_macro_f1": metrics.token_macro_f1(spans, masks),
                "iou_f1": metrics.iou_f1(spans, masks),
            }
    return rounded(report)


def rounded(value: Any, digits: int = 4) -> Any:
    """The same structure with its floats rounded."""
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    return round(value, digits) if isinstance(value, float) else value


def mean_macro_f1(report: Metrics) -> float:
    """Mean macro-F1 over the heads: what epochs are compared by."""
    return float(np.mean([values["macro_f1"] for values in report.values()]))


def markdown(report: Metrics) -> str:
    """The heads as a Markdown table, shares in per cent."""
    lines = [
        "| head | n | majority | accuracy | macro-F1 | ECE before | ECE after | T-F1 | IOU-F1 |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, values in report.items():
        rationale = values.get("rationale", {})
        cells = [
            *(values[key] for key in SHOWN),
            *(rationale.get(key) for key in ("token_f1", "iou_f1")),
        ]
        shown = " | ".join("–" if cell is None else f"{100 * cell:.1f}" for cell in cells)
        lines.append(f"| {name} | {values['n']} | {shown} |")
    return "\n".join(lines)
