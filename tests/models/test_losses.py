"""Losses compared with values computed by hand."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from models.model import losses  # noqa: E402

EVEN = torch.tensor([[0.0, 0.0]])
FIRST = torch.tensor([[1.0, 0.0]])
ODDS_THREE = torch.tensor([[math.log(3.0), 0.0]])
"""Probabilities 0.75 and 0.25."""


def test_cross_entropy_of_even_odds_is_log_two() -> None:
    assert losses.cross_entropy(EVEN, FIRST).item() == pytest.approx(math.log(2))


def test_cross_entropy_takes_annotator_votes() -> None:
    target = torch.tensor([[0.5, 0.5]])
    expected = -0.5 * math.log(0.75) - 0.5 * math.log(0.25)
    assert losses.cross_entropy(ODDS_THREE, target).item() == pytest.approx(expected)


def test_weighted_cross_entropy_multiplies_the_true_class() -> None:
    weights = torch.tensor([2.0, 5.0])
    loss = losses.cross_entropy(ODDS_THREE, FIRST, weights)
    assert loss.item() == pytest.approx(-2 * math.log(0.75))


def test_inverse_sqrt_weights_have_mean_one_over_the_data() -> None:
    counts = torch.tensor([100.0, 25.0])
    weights = losses.inverse_sqrt_weights(counts)
    assert (weights[1] / weights[0]).item() == pytest.approx(2.0)
    assert ((weights * counts).sum() / counts.sum()).item() == pytest.approx(1.0)


def test_inverse_sqrt_weights_of_an_absent_label_are_finite() -> None:
    assert torch.isfinite(losses.inverse_sqrt_weights(torch.tensor([10.0, 0.0]))).all()


def test_focal_reduces_the_loss_of_correct_predictions() -> None:
    expected = -((1 - 0.75) ** 2) * math.log(0.75)
    assert losses.focal(ODDS_THREE, FIRST).item() == pytest.approx(expected)
    without = losses.focal(ODDS_THREE, FIRST, gamma=0.0)
    assert without.item() == pytest.approx(-math.log(0.75))


def test_ldam_subtracts_the_margin_from_the_true_class_only() -> None:
    counts = torch.tensor([16.0, 1.0])
    margin = 0.5 * 16**-0.25
    expected = -math.log(3 * math.exp(-margin) / (3 * math.exp(-margin) + 1))
    loss = losses.ldam(ODDS_THREE, FIRST, counts, scale=1.0)
    assert loss.item() == pytest.approx(expected)


def test_ldam_gives_the_rarest_class_the_largest_margin() -> None:
    counts = torch.tensor([16.0, 1.0])
    second = torch.tensor([[0.0, 1.0]])
    common = losses.ldam(EVEN, FIRST, counts, scale=1.0)
    rare = losses.ldam(EVEN, second, counts, scale=1.0)
    assert rare.item() == pytest.approx(math.log(1 + math.exp(0.5)))
    assert rare > common


def test_ldam_scales_the_logits() -> None:
    counts = torch.tensor([1.0, 1.0])
    expected = math.log(1 + math.exp(30 * 0.5))
    assert losses.ldam(EVEN, FIRST, counts).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["cross_entropy", "weighted", "focal", "ldam"])
def test_every_loss_of_a_head_has_a_gradient(name: losses.LossName) -> None:
    logits = torch.randn(6, 3, requires_grad=True)
    target = torch.eye(3)[[0, 1, 2, 0, 0, 1]]
    losses.HeadLoss(name, torch.tensor([30.0, 5.0, 0.0]))(logits, target).backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert logits.grad.abs().sum() > 0


def test_rationale_loss_counts_only_masked_tokens() -> None:
    logits = torch.tensor([[[0.0, 9.0, 9.0], [9.0, 9.0, 9.0]]])
    mask = torch.zeros(1, 2, 3)
    mask[0, 0, 0] = 1
    loss = losses.rationale_loss(logits, torch.zeros(1, 2, 3), mask)
    assert loss.item() == pytest.approx(math.log(2))


def test_rationale_loss_without_annotations_is_zero() -> None:
    zeros = torch.zeros(1, 2, 3)
    assert losses.rationale_loss(torch.randn(1, 2, 3), zeros, zeros).item() == 0.0
