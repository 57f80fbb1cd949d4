"""Metrics compared with values computed by hand."""

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


def test_matthews_correlation() -> None:
    # two true positives, one false positive, one false negative, six true negatives
    gold, predicted = [1, 1, 1, 0, 0, 0, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0, 0, 0, 0, 0]
    expected = (2 * 6 - 1 * 1) / (3 * 3 * 7 * 7) ** 0.5
    assert metrics.mcc(gold, predicted) == pytest.approx(expected)
    assert metrics.mcc(gold, [0] * 10) == 0.0


def test_a_binary_task_is_the_mean_over_no_and_yes() -> None:
    """gold 1 1 0 0 0, given 1 0 1 0 0: yes 1 of 2 and 1 of 2, no 2 of 3 and 2 of 3."""
    task = metrics.binary_task([1, 1, 0, 0, 0], [1, 0, 1, 0, 0])
    assert task.precision == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert task.recall == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert task.f1 == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert task.accuracy == pytest.approx(3 / 5)


def test_an_absent_class_counts_nothing() -> None:
    """As RoBERTa-large on reflections in Xu & Jiang, Table 17: recall 1 and 0, precision 0."""
    task = metrics.binary_task([0, 0, 0, 1], [0, 0, 0, 0])
    assert task.precision == pytest.approx(0.375)
    assert task.recall == pytest.approx(0.5)
    assert task.f1 == pytest.approx((2 * 0.75 / 1.75) / 2)


def test_reliability_bins() -> None:
    probabilities = np.array([[0.9, 0.1], [0.92, 0.08], [0.4, 0.6]])
    low, high = metrics.reliability(probabilities, np.array([0, 1, 1]), bins=10)
    assert low == (pytest.approx(1 / 3), pytest.approx(0.6), 1.0)
    assert high == (pytest.approx(2 / 3), pytest.approx(0.91), 0.5)


def test_the_noise_of_a_calibrated_model_shrinks_with_its_size() -> None:
    """One bin, confidence 0.6: the gap is the error of a mean, about 0.8 sd of it on average."""
    few, many = (np.full((n, 2), (0.6, 0.4)) for n in (100, 10_000))
    mean, high = metrics.calibration_noise(few)
    assert mean == pytest.approx(0.8 * (0.24 / 100) ** 0.5, rel=0.15)
    assert high == pytest.approx(1.96 * (0.24 / 100) ** 0.5, rel=0.25)
    assert metrics.calibration_noise(many)[0] < mean / 5


def test_risk_and_coverage() -> None:
    points = metrics.risk_coverage(
        np.array([0.9, 0.5, 0.7, 0.7]), np.array([True, False, True, False])
    )
    assert points == [(0.5, 1.0, 0.5), (0.7, 0.75, pytest.approx(2 / 3)), (0.9, 0.25, 1.0)]


def test_token_f1_is_the_mean_over_responses() -> None:
    gold = [[1, 1, 0], [0, 0], [0, 1], [0, 0]]
    predicted = [[1, 0, 0], [0, 0], [0, 0], [0, 1]]
    # precision 1 and recall 1/2; both empty; one empty, twice
    assert metrics.token_f1(gold, predicted) == pytest.approx((2 / 3 + 1 + 0 + 0) / 4)


def test_always_empty_scores_the_share_without_rationale_in_both_measures() -> None:
    """The property of Lee et al.'s "Majority" row that reveals the count."""
    gold = [[1, 1, 0], [0, 0], [0, 0], [0, 1]]
    empty = [[0] * len(mask) for mask in gold]
    assert metrics.token_f1(gold, empty) == metrics.iou_f1(gold, empty) == 0.5
    assert metrics.token_f1_pooled(gold, empty) == 0.0


def test_pooled_token_f1_is_over_all_responses_together() -> None:
    gold, predicted = [[1, 1, 0], [0, 0]], [[1, 0, 0], [0, 1]]
    assert metrics.token_f1_pooled(gold, predicted) == pytest.approx(0.5)
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
