"""Metrics against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from models.evaluate import metrics


def test_accuracy_and_macro_f1() -> None:
    gold, predicted = [0, 0, 0, 1], [0, 0, 1, 1]
    assert metrics.accuracy(gold, predicted) == 0.75
    # label 0: precision 1, recall 2/3, F1 0.8; label 1: precision 1/2, recall 1, F1 2/3
    assert metrics.macro_f1(gold, predicted) == pytest.approx((0.8 + 2 / 3) / 2)


def test_calibration_error_is_the_gap_between_confidence_and_accuracy() -> None:
    probabilities = np.array([[0.9, 0.1]] * 4)
    gold = np.array([0, 0, 0, 1])
    error = metrics.expected_calibration_error(probabilities, gold)
    assert error == pytest.approx(0.15)


def test_calibration_error_weighs_bins_by_size() -> None:
    probabilities = np.array([[1.0, 0.0], [0.6, 0.4], [0.6, 0.4], [0.4, 0.6]])
    gold = np.array([0, 0, 1, 0])
    # bin of 1.0: gap 0; bin of 0.6 (three items, one right): |1/3 - 0.6|
    expected = 0.75 * (0.6 - 1 / 3)
    assert metrics.expected_calibration_error(probabilities, gold) == pytest.approx(expected)


def test_token_f1_is_over_all_responses_together() -> None:
    gold, predicted = [[1, 1, 0], [0, 0]], [[1, 0, 0], [0, 1]]
    assert metrics.token_f1(gold, predicted) == pytest.approx(0.5)
    # outside: 3 gold, 3 predicted, 2 shared
    assert metrics.token_macro_f1(gold, predicted) == pytest.approx((0.5 + 2 / 3) / 2)


@pytest.mark.parametrize(
    ("mask", "spans"),
    [
        ([], []),
        ([0, 0], []),
        ([1, 1], [(0, 2)]),
        ([1, 0, 1, 1], [(0, 1), (2, 4)]),
    ],
)
def test_spans_are_runs_of_ones(mask: list[int], spans: list[tuple[int, int]]) -> None:
    assert metrics.spans_of(mask) == spans


def test_iou_of_spans() -> None:
    assert metrics.iou((0, 4), (2, 6)) == pytest.approx(2 / 6)
    assert metrics.iou((0, 2), (2, 4)) == 0.0
    assert metrics.iou((1, 3), (1, 3)) == 1.0


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        ([0, 0, 0], [0, 0, 0], 1.0),
        ([1, 1, 0], [0, 0, 0], 0.0),
        ([0, 0, 0], [1, 0, 0], 0.0),
        ([1, 1, 1, 1], [1, 1, 0, 0], 1.0),  # IOU exactly 0.5 counts
        ([1, 1, 1, 1], [1, 0, 0, 0], 0.0),
        ([1, 1, 0, 1], [1, 1, 0, 0], 2 / 3),  # precision 1, recall 1/2
        ([1, 1, 0, 0], [1, 1, 0, 1], 2 / 3),  # precision 1/2, recall 1
    ],
)
def test_iou_f1_of_a_response(gold: list[int], predicted: list[int], expected: float) -> None:
    assert metrics.response_iou_f1(gold, predicted) == pytest.approx(expected)


def test_iou_f1_is_the_mean_over_responses() -> None:
    assert metrics.iou_f1([[1, 1], [0, 1]], [[1, 1], [1, 0]]) == pytest.approx(0.5)
