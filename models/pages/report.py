"""Compute tables as plain dictionaries from predictions: shares are 0-1, `n` counts turns.

A figure over folds is `{"mean", "sd", "folds", "pooled"}`: `pooled` is computed on all folds' items
together, each scored by the model that did not train on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from models.evaluate import metrics
from models.evaluate.folds import VIEWS, Fold
from models.evaluate.predict import Floats, Ints, Predictions
from models.evaluate.resampling import interval, partial_spearman, spearman, spread
from models.fit.calibrate import RIGHT_SHARE, TASKS, Calibration, crossfitted
from models.labels import HEADS_BY_NAME, RATED, RATIONALE_ORDER
from stream_app.core.measures.heads import LEVELS

Metrics = dict[str, dict[str, Any]]
Figures = dict[str, float]
SHOWN = ("majority", "accuracy", "macro_f1", "mcc", "ece_before", "ece_after")
ANNOMI_HEADS = ("behaviour", "question", "reflection", "input", "talk_type")
COVERAGES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
DIGITS = 5


def rounded(value: Any, digits: int = DIGITS) -> Any:
    """Round all floats of a structure, and replace NaN (not defined) by None."""
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item, digits) for item in value]
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, digits)
    return value


def classification(gold: Ints, predicted: Ints) -> Figures:
    """Accuracy, macro-F1, Matthews correlation, and the accuracy of the most frequent label."""
    return {
        "majority": float(np.bincount(gold).max() / len(gold)),
        "accuracy": metrics.accuracy(gold, predicted),
        "macro_f1": metrics.macro_f1(gold, predicted),
        "mcc": metrics.mcc(gold, predicted),
    }


def f1_of_labels(head: str, gold: Ints, predicted: Ints) -> Figures:
    """F1 of each label of a level head, 0-1 (`f1_weak`); empty for other heads."""
    if HEADS_BY_NAME[head].kind != "level":
        return {}
    each = metrics.f1_by_label(gold, predicted, len(LEVELS))
    return {f"f1_{level}": value for level, value in zip(LEVELS, each, strict=True)}


def rationale(gold: list[Ints], masks: list[Ints]) -> Figures:
    """Token and span scores, 0-1.

    `token_f1_gold` and `iou_f1_gold` are over responses with a gold rationale. `empty_agreed` is
    the share of all responses in which both masks are empty; `token_f1` and `iou_f1` count these as
    correct. `always_empty` is the score of never predicting a rationale.
    """
    marked = [number for number, mask in enumerate(gold) if mask.any()]
    own = [gold[number] for number in marked], [masks[number] for number in marked]
    both_empty = [not (g.any() or m.any()) for g, m in zip(gold, masks, strict=True)]
    return {
        "token_f1_gold": metrics.token_f1(*own) if marked else 0.0,
        "iou_f1_gold": metrics.iou_f1(*own) if marked else 0.0,
        "empty_agreed": float(np.mean(both_empty)),
        "always_empty": float(np.mean([not mask.any() for mask in gold])),
        "token_f1": metrics.token_f1(gold, masks),
        "iou_f1": metrics.iou_f1(gold, masks),
        "token_f1_pooled": metrics.token_f1_pooled(gold, masks),
        "token_macro_f1": metrics.token_macro_f1(gold, masks),
    }


def measure(predictions: Predictions, calibration: Calibration | None = None) -> Metrics:
    """Metrics by head of one model's predictions, with the calibration of the service."""
    calibration = calibration or Calibration()
    report: Metrics = {}
    for name, outputs in predictions.heads.items():
        probabilities = calibration.probabilities(name, outputs.logits)
        predicted = calibration.labels(name, probabilities)
        gold = outputs.gold
        report[name] = {
            "n": len(gold),
            **classification(gold, predicted),
            "ece_before": metrics.expected_calibration_error(outputs.probabilities(), gold),
            "ece_after": metrics.expected_calibration_error(probabilities, gold),
        }
        responses = predictions.rationales.get(name)
        if responses:
            masks = calibration.masks(name, responses, predicted)
            figures = rationale([item.gold for item in responses], masks)
            report[name]["rationale"] = {"n": len(responses), **figures}
    found: Metrics = rounded(report, 4)
    return found


def over_folds(figures: list[Figures], pooled: Figures) -> dict[str, dict[str, Any]]:
    """Mean and standard deviation (n - 1; 0 for one fold) of each figure over the folds."""
    return {
        key: {
            "mean": float(np.mean([row[key] for row in figures])),
            "sd": float(np.std([row[key] for row in figures], ddof=1)) if len(figures) > 1 else 0.0,
            "folds": [row[key] for row in figures],
            "pooled": pooled[key],
        }
        for key in pooled
    }


def labels_over_folds(head: str, gold: Sequence[Ints], given: Sequence[Ints]) -> dict[str, Any]:
    """Figures of one head from its gold and predicted labels, [n] a fold."""

    def figures(truth: Ints, answers: Ints) -> Figures:
        return classification(truth, answers) | f1_of_labels(head, truth, answers)

    each = [figures(g, p) for g, p in zip(gold, given, strict=True)]
    pooled = figures(np.concatenate(gold), np.concatenate(given))
    return {"n": sum(map(len, gold)), **over_folds(each, pooled)}


def rating_figures(
    scores: Sequence[Floats],
    ratings: Sequence[Floats],
    words: Sequence[Ints],
    groups: Sequence[Ints],
) -> dict[str, Any]:
    """Spearman of scores with ratings, [n] a fold, plain and given the answer's length.

    `words` counts the words of each answer; intervals resample conversations (`groups`, numbered
    within the fold).
    """
    score, rating = (np.concatenate(parts).astype(np.float64) for parts in (scores, ratings))
    length = np.concatenate(words)
    group = np.concatenate(
        [np.asarray(own, np.int64) + 1_000_000 * number for number, own in enumerate(groups)]
    )
    ranks = rankdata(length)

    def same_length(rows: Ints) -> float:
        return partial_spearman(score[rows], rating[rows], ranks[rows, None])

    return {
        "n": len(score),
        "conversations": len(np.unique(group)),
        "spearman": interval(group, lambda rows: spearman(score[rows], rating[rows])),
        "same_length": interval(group, same_length),
        **spread([spearman(s, r) for s, r in zip(scores, ratings, strict=True)]),
    }


class CrossValidation:
    """The folds with their cross-fitted calibrations, and the tables computed from them."""

    def __init__(self, folds: list[Fold], planned: int) -> None:
        self.folds = folds
        self.planned = planned
        self.calibrations = crossfitted(folds)
        self.plain = [Calibration() for _ in folds]

    def about(self) -> dict[str, Any]:
        """Which folds the figures are from."""
        return {"folds": [fold.number for fold in self.folds], "of": self.planned}

    def tables(self) -> dict[str, dict[str, Any]]:
        """All tables by file name."""
        return {
            name: rounded(self.about() | table)
            for name, table in {
                "levels": self.levels(),
                "rationales": self.rationales(),
                "strategies": self.strategies(),
                "annomi": self.heads(ANNOMI_HEADS),
                "intents": self.heads(("empathic_intent",)),
                "ratings": self.ratings(),
                "calibration": self.calibration(),
            }.items()
        }

    def levels(self) -> dict[str, Any]:
        """EPITOME levels by view, with the decisions of the service."""
        views: dict[str, Any] = {}
        for view in VIEWS:
            rows = {name: self._labels(name, view, tuned=True) for name in RATIONALE_ORDER}
            views[view] = {"shipped": rows | {"mean": mean_of_rows(list(rows.values()))}}
        return {"views": views}

    def heads(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Other heads by view: the most probable label before and after calibration."""
        return {
            "views": {
                view: {
                    "argmax": {n: self._labels(n, view, tuned=False) for n in names},
                    "shipped": {n: self._labels(n, view, tuned=True) for n in names},
                }
                for view in VIEWS
            }
        }

    def shipped(self, index: int, head: str, logits: Floats) -> Ints:
        """Labels after this fold's cross-fitted calibration, [n]."""
        calibration = self.calibrations[index]
        return calibration.labels(head, calibration.probabilities(head, logits))

    def _labels(self, head: str, view: str, *, tuned: bool) -> dict[str, Any]:
        outputs = [fold.views[view].heads[head] for fold in self.folds]
        gold = [item.gold for item in outputs]
        given = [
            self.shipped(index, head, item.logits) if tuned else item.predicted
            for index, item in enumerate(outputs)
        ]
        return labels_over_folds(head, gold, given)

    def ratings(self) -> dict[str, Any]:
        """Rated empathy: rank correlation of its probability with the rating, by view."""
        if any(fold.rated is None or RATED not in fold.views["final"].heads for fold in self.folds):
            return {"views": {}}
        return {"views": {view: self._ratings(view) for view in VIEWS}}

    def _ratings(self, view: str) -> dict[str, Any]:
        outputs = [fold.views[view].heads[RATED] for fold in self.folds]
        known = [fold.rated for fold in self.folds if fold.rated is not None]
        scores = [
            calibration.probabilities(RATED, item.logits)[:, 1]
            for calibration, item in zip(self.calibrations, outputs, strict=True)
        ]
        return rating_figures(
            scores,
            [item.target[:, 1] for item in outputs],
            [item.words for item in known],
            [item.conversation for item in known],
        )

    def rationales(self) -> dict[str, Any]:
        """Rationales where the predicted level is above none, final view."""
        rows = {}
        for head in RATIONALE_ORDER:
            gold, masks = [], []
            for index, fold in enumerate(self.folds):
                predictions = fold.views["final"]
                items = predictions.rationales[head]
                levels = self.shipped(index, head, predictions.heads[head].logits)
                gold.append([item.gold for item in items])
                masks.append(self.calibrations[index].masks(head, items, levels))
            each = [rationale(g, m) for g, m in zip(gold, masks, strict=True)]
            rows[head] = {
                "n": sum(map(len, gold)),
                "with_gold": sum(bool(item.any()) for item in _flat(gold)),
                "thresholds": [c.thresholds.get(head, 0.5) for c in self.calibrations],
                **over_folds(each, rationale(_flat(gold), _flat(masks))),
            }
        return {"rows": rows}

    def strategies(self) -> dict[str, Any]:
        """ESConv: seven binary tasks by view and decision, and the eight classes.

        The tasks leave out the turns of failed chats, which the papers' corpus does not have.
        """
        views: dict[str, Any] = {}
        for view in VIEWS:
            views[view] = {
                "argmax": self._tasks(view, tuned=False),
                "shipped": self._tasks(view, tuned=True),
                "with_failed": self._tasks(view, tuned=True, with_failed=True),
                "classes": {
                    "argmax": self._labels("strategy", view, tuned=False),
                    "shipped": self._labels("strategy", view, tuned=True),
                },
            }
        return {"views": views}

    def _tasks(self, view: str, *, tuned: bool, with_failed: bool = False) -> dict[str, Any]:
        gold, given = [], []
        for fold, calibration in zip(self.folds, self.calibrations, strict=True):
            outputs = fold.views[view].heads["strategy"]
            if tuned:
                answers = calibration.strategies(
                    calibration.probabilities("strategy", outputs.logits)
                )
            else:
                answers = np.eye(outputs.logits.shape[1], dtype=int)[outputs.predicted]
            kept = slice(None) if with_failed or fold.failed is None else ~fold.failed
            gold.append(outputs.gold[kept])
            given.append(answers[kept])
        tasks = {
            task: over_folds(
                [binary_figures(g == i, a[:, i]) for g, a in zip(gold, given, strict=True)],
                binary_figures(np.concatenate(gold) == i, np.concatenate(given)[:, i]),
            )
            for i, task in enumerate(TASKS)
        }
        return {"tasks": tasks, "mean": mean_of_rows(list(tasks.values()))}

    def calibration(self) -> dict[str, Any]:
        """ECE before and after, its noise, abstention and reliability bins of every head."""
        rows = {head: self._calibration(head) for head in self.folds[0].views["final"].heads}
        return {
            "bins": metrics.BINS,
            "rows": rows,
            "largest_ece": max(row["ece_after"] for row in rows.values()),
        }

    def _calibration(self, head: str) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for view in ("provisional", "final"):
            outputs = [fold.views[view].heads[head] for fold in self.folds]
            gold = np.concatenate([item.gold for item in outputs])
            before = np.concatenate([item.probabilities() for item in outputs])
            after = np.concatenate(
                [
                    calibration.probabilities(head, item.logits)
                    for calibration, item in zip(self.calibrations, outputs, strict=True)
                ]
            )
            ending = "" if view == "final" else f"_{view}"
            row[f"ece_before{ending}"] = metrics.expected_calibration_error(before, gold)
            row[f"ece_after{ending}"] = metrics.expected_calibration_error(after, gold)
        noise, noise_high = metrics.calibration_noise(after)
        decided = [
            self.shipped(index, head, item.logits) == item.gold
            for index, item in enumerate(outputs)
        ]
        right = np.concatenate(decided)
        confidence = after.max(-1)
        cuts = np.cumsum([len(item.gold) for item in outputs])[:-1]
        limits = [c.abstain_below.get(head, 0.0) for c in self.calibrations]
        answered = np.concatenate(
            [part >= limit for part, limit in zip(np.split(confidence, cuts), limits, strict=True)]
        )
        accuracy = float(right[answered].mean()) if answered.any() else None
        return row | {
            "n": len(gold),
            "log_loss_before": _log_loss(before, gold),
            "log_loss_after": _log_loss(after, gold),
            "noise": noise,
            "noise_95": noise_high,
            "abstain": {
                "thresholds": limits,
                "coverage": float(answered.mean()),
                "accuracy": accuracy,
                "reached": accuracy is not None and accuracy >= RIGHT_SHARE,
            },
            "risk_coverage": _at_coverages(confidence, right),
            "reliability": {
                "before": [list(part) for part in metrics.reliability(before, gold)],
                "after": [list(part) for part in metrics.reliability(after, gold)],
            },
        }


def binary_figures(gold: Ints, predicted: Ints) -> Figures:
    """One binary task: precision, recall, F1, accuracy and Matthews correlation."""
    return metrics.binary_task(gold, predicted)._asdict() | {
        "mcc": metrics.mcc(gold.astype(int), predicted.astype(int))
    }


def mean_of_rows(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean over rows of each figure, fold by fold."""
    keys = [key for key, value in rows[0].items() if isinstance(value, dict)]
    each = [
        {key: float(np.mean([row[key]["folds"][fold] for row in rows])) for key in keys}
        for fold in range(len(rows[0][keys[0]]["folds"]))
    ]
    pooled = {key: float(np.mean([row[key]["pooled"] for row in rows])) for key in keys}
    return over_folds(each, pooled)


def _flat(parts: list[list[Ints]]) -> list[Ints]:
    return [item for part in parts for item in part]


def _log_loss(probabilities: Floats, gold: Ints) -> float:
    return float(-np.log(probabilities[np.arange(len(gold)), gold] + 1e-12).mean())


def _at_coverages(confidence: Floats, right: Ints) -> list[dict[str, float]]:
    """Accuracy of the most confident share of the turns."""
    hits = right[np.argsort(-confidence, kind="stable")]
    return [
        {"coverage": share, "accuracy": float(hits[: max(1, round(share * len(hits)))].mean())}
        for share in COVERAGES
    ]


def markdown(report: Metrics) -> str:
    """One model's heads as a Markdown table, shares in per cent."""
    lines = [
        "| head | n | majority | accuracy | macro-F1 | MCC | ECE before | ECE after "
        "| token F1 | IOU-F1 |",
        "| --- |" + " ---: |" * 9,
    ]
    for name, values in report.items():
        spans = values.get("rationale", {})
        cells = [
            *(values.get(key) for key in SHOWN),
            *(spans.get(key) for key in ("token_f1", "iou_f1")),
        ]
        shown = " | ".join("–" if cell is None else f"{100 * cell:.1f}" for cell in cells)
        lines.append(f"| {name} | {values['n']} | {shown} |")
    return "\n".join(lines)
