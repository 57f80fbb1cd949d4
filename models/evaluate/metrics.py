"""Metrics of classification, calibration and rationales."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score, f1_score

Span = tuple[int, int]


def accuracy(gold: ArrayLike, predicted: ArrayLike) -> float:
    """Share of the items with the right label, 0-1."""
    return float(accuracy_score(gold, predicted))


def macro_f1(gold: ArrayLike, predicted: ArrayLike) -> float:
    """Unweighted mean of the F1 of every label that occurs in either, 0-1."""
    return float(f1_score(gold, predicted, average="macro", zero_division=0.0))


def expected_calibration_error(
    probabilities: NDArray[np.floating], gold: NDArray[np.integer], bins: int = 15
) -> float:
    """Mean gap between confidence and accuracy over equal-width bins, weighted by size, 0-1.

    `probabilities` [n, labels], `gold` [n] (Guo et al. 2017).
    """
    confidence = probabilities.max(-1)
    right = probabilities.argmax(-1) == gold
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [
        abs(right[bin_of == number].mean() - confidence[bin_of == number].mean())
        * (bin_of == number).mean()
        for number in np.unique(bin_of)
    ]
    return float(sum(gaps))


def token_f1(gold: Sequence[ArrayLike], predicted: Sequence[ArrayLike]) -> float:
    """F1 of the rationale tokens over all responses together, 0-1."""
    return float(f1_score(_joined(gold), _joined(predicted), zero_division=0.0))


def token_macro_f1(gold: Sequence[ArrayLike], predicted: Sequence[ArrayLike]) -> float:
    """Mean of the F1 of the tokens inside and the tokens outside rationales, 0-1.

    Always answering "outside" gives about 0.47, as the weakest baselines of EPITOME's Table 4.
    """
    return macro_f1(_joined(gold), _joined(predicted))


def _joined(masks: Sequence[ArrayLike]) -> NDArray[np.integer]:
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

    A predicted span is right when its overlap with some gold span is at least the threshold,
    and a gold span is found likewise. Two empty masks agree: 1.
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
