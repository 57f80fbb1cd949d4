"""Metrics of classification, calibration and rationales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

Span = tuple[int, int]
Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

BINS = 15


def accuracy(gold: ArrayLike, predicted: ArrayLike) -> float:
    """Share of the items with the right label, 0-1."""
    return float(accuracy_score(gold, predicted))


def macro_f1(gold: ArrayLike, predicted: ArrayLike) -> float:
    """Unweighted mean F1 over all labels that occur in either, 0-1."""
    return float(f1_score(gold, predicted, average="macro", zero_division=0.0))


def f1_by_label(gold: ArrayLike, predicted: ArrayLike, labels: int) -> list[float]:
    """F1 of each label from 0 to `labels` - 1; 0 for a label without a true positive.

    >>> f1_by_label([0, 1, 2], [0, 2, 2], 3)
    [1.0, 0.0, 0.6666666666666666]
    """
    each = f1_score(gold, predicted, labels=range(labels), average=None, zero_division=0.0)
    return [float(value) for value in each]


def mcc(gold: ArrayLike, predicted: ArrayLike) -> float:
    """Matthews correlation, -1 to 1; 0 for a constant prediction (Wu et al. 2021, section 5.1).

    With more than two labels it is Gorodkin's generalisation.
    """
    if len(np.union1d(gold, predicted)) < 2:
        return 0.0
    return float(matthews_corrcoef(gold, predicted))


class BinaryTask(NamedTuple):
    """One binary task: means over the classes "no" and "yes", and the accuracy, 0-1."""

    precision: float
    recall: float
    f1: float
    accuracy: float


def binary_task(gold: ArrayLike, predicted: ArrayLike) -> BinaryTask:
    """Macro precision, recall and F1 and the accuracy (Xu & Jiang, section 5.3).

    `gold` and `predicted` are boolean [n]. A class that is never predicted has precision 0.
    """
    truth, given = np.asarray(gold, dtype=bool), np.asarray(predicted, dtype=bool)
    rows = []
    for label in (False, True):
        shared = np.sum((truth == label) & (given == label))
        precision = shared / max(1, np.sum(given == label))
        recall = shared / max(1, np.sum(truth == label))
        f1 = 2 * precision * recall / (precision + recall) if shared else 0.0
        rows.append((precision, recall, f1))
    precision, recall, f1 = np.mean(rows, axis=0).tolist()
    return BinaryTask(precision, recall, f1, accuracy=float(np.mean(truth == given)))


class ReliabilityBin(NamedTuple):
    """Items whose confidence falls into one of the equal-width bins."""

    share: float
    confidence: float
    accuracy: float


def reliability(probabilities: Floats, gold: Ints, bins: int = BINS) -> list[ReliabilityBin]:
    """Non-empty bins by rising confidence; `probabilities` [n, labels], `gold` [n].

    Confidence is the largest probability; an item is correct when its label is the gold one.
    """
    confidence = probabilities.max(-1)
    right = probabilities.argmax(-1) == gold
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    return [
        ReliabilityBin(
            share=float(np.mean(bin_of == number)),
            confidence=float(confidence[bin_of == number].mean()),
            accuracy=float(right[bin_of == number].mean()),
        )
        for number in np.unique(bin_of)
    ]


def expected_calibration_error(probabilities: Floats, gold: Ints, bins: int = BINS) -> float:
    """Mean gap between confidence and accuracy over equal-width bins, weighted by size, 0-1.

    `probabilities` [n, labels], `gold` [n] (Guo et al. 2017).
    """
    found = reliability(probabilities, gold, bins)
    return float(sum(row.share * abs(row.accuracy - row.confidence) for row in found))


def calibration_noise(
    probabilities: Floats, draws: int = 200, bins: int = BINS, seed: int = 0
) -> tuple[float, float]:
    """Mean and 95th percentile of the ECE of a perfectly calibrated model at this n.

    Gold labels are drawn from the probabilities [n, labels] themselves, so any error is noise.
    """
    chance = np.random.default_rng(seed)
    edges = probabilities.cumsum(-1)
    errors = []
    for _ in range(draws):
        gold = (chance.random((len(edges), 1)) > edges[:, :-1]).sum(-1)
        errors.append(expected_calibration_error(probabilities, gold, bins))
    return float(np.mean(errors)), float(np.quantile(errors, 0.95))


def response_token_f1(gold: ArrayLike, predicted: ArrayLike) -> float:
    """F1 of one response's rationale tokens, 0-1; two empty masks score 1."""
    truth, given = np.asarray(gold, dtype=bool), np.asarray(predicted, dtype=bool)
    both = truth.sum() + given.sum()
    return float(2 * (truth & given).sum() / both) if both else 1.0


def token_f1(gold: Sequence[ArrayLike], predicted: Sequence[ArrayLike]) -> float:
    """Mean over responses of the F1 of their rationale tokens, 0-1.

    An empty prediction for a response without a rationale scores 1. The papers count likewise: in
    Lee et al., Table 1, a baseline without any rationale ("Majority") has a T-F1 equal to its
    IOU-F1, the share of responses without a rationale.
    """
    return float(np.mean([response_token_f1(g, p) for g, p in zip(gold, predicted, strict=True)]))


def token_f1_pooled(gold: Sequence[ArrayLike], predicted: Sequence[ArrayLike]) -> float:
    """F1 of the rationale tokens pooled over all responses, 0-1: the stricter count."""
    return float(f1_score(_joined(gold), _joined(predicted), zero_division=0.0))


def token_macro_f1(gold: Sequence[ArrayLike], predicted: Sequence[ArrayLike]) -> float:
    """Mean F1 over the token classes inside and outside rationales, 0-1."""
    return macro_f1(_joined(gold), _joined(predicted))


def _joined(masks: Sequence[ArrayLike]) -> Ints:
    return np.concatenate([np.asarray(mask, dtype=int) for mask in masks])


def spans_of(mask: ArrayLike) -> list[Span]:
    """Runs of ones as (start, stop).

    >>> spans_of([0, 1, 1, 0, 1])
    [(1, 3), (4, 5)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(mask, dtype=int), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def iou(first: Span, second: Span) -> float:
    """Length of the intersection over the length of the union, 0-1."""
    shared = max(0, min(first[1], second[1]) - max(first[0], second[0]))
    return shared / (first[1] - first[0] + second[1] - second[0] - shared)


def response_iou_f1(gold: ArrayLike, predicted: ArrayLike, threshold: float = 0.5) -> float:
    """IOU-F1 of one response (EPITOME, section 6.1; DeYoung et al. 2020).

    A predicted span is correct when its overlap with some gold span is at least the threshold; a
    gold span is found likewise. Two empty masks score 1.
    """
    gold_spans, predicted_spans = spans_of(gold), spans_of(predicted)
    if not gold_spans and not predicted_spans:
        return 1.0
    if not gold_spans or not predicted_spans:
        return 0.0
    precision = np.mean([any(iou(p, g) >= threshold for g in gold_spans) for p in predicted_spans])
    recall = np.mean([any(iou(p, g) >= threshold for p in predicted_spans) for g in gold_spans])
    return float(2 * precision * recall / (precision + recall)) if precision + recall else 0.0


def iou_f1(gold: Sequence[ArrayLike], predicted: Sequence[ArrayLike]) -> float:
    """Mean IOU-F1 at 0.5 over the responses, 0-1."""
    return float(np.mean([response_iou_f1(g, p) for g, p in zip(gold, predicted, strict=True)]))


class CoveragePoint(NamedTuple):
    """Accuracy and coverage when answering from a confidence threshold, 0-1."""

    threshold: float
    coverage: float
    accuracy: float


def risk_coverage(confidence: Floats, right: NDArray[np.bool_]) -> list[CoveragePoint]:
    """Accuracy of the answered turns at every threshold that changes it, by falling coverage.

    `confidence` and `right` are [n]; a turn is answered when its confidence is at least the
    threshold. The first point has full coverage.
    """
    order = np.argsort(confidence, kind="stable")
    sure, hits = confidence[order], right[order]
    answered = np.arange(len(sure), 0, -1)
    correct = hits[::-1].cumsum()[::-1]
    first = np.concatenate([[True], sure[1:] > sure[:-1]])
    return [
        CoveragePoint(
            float(sure[i]), float(answered[i] / len(sure)), float(correct[i] / answered[i])
        )
        for i in np.flatnonzero(first)
    ]
