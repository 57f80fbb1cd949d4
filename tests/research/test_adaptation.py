"""The simulated platforms of docs/adaptation.md."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from research.adaptation import figures, learning_curve, low_rank
from research.adaptation.learning_curve import Run
from research.adaptation.low_rank import LowRank, VectorData
from research.adaptation.platform import ScoredPlatform
from research.adaptation.raters import HEAD, RATERS, by_counsellor, draw
from research.adaptation.task_inputs import Task, TaskInputs
from stream_app.inference.bundles.recalibration import softmax

FUSED = 20


@pytest.fixture
def platform() -> ScoredPlatform:
    """Random vectors instead of scored chats."""
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(FUSED, 6), nn.GELU(), nn.Linear(6, 3)).requires_grad_(False)
    task = Task(network, tempered=True, temperature=1.3, bias=torch.tensor([0.1, 0.0, -0.1]))
    inputs = TaskInputs(torch.randn(600, FUSED), torch.randn(600, FUSED))
    with torch.inference_mode():
        log = task.log_probabilities(*map(network, inputs)).double().numpy()
    strategies = ["question", "reflection_of_feelings", "affirmation_and_reassurance", "others"]
    return ScoredPlatform(
        labels={HEAD: ["none", "weak", "strong"], "strategy": strategies},
        probabilities={
            HEAD: softmax(log),
            "strategy": rng.dirichlet(np.ones(4), 600),
        },
        session=np.arange(600) // 10,
        offsets={HEAD: (0.0, 0.1, 0.2)},
        naming=rng.integers(0, 3, 600),
        task=task,
        inputs=inputs,
    )


@pytest.mark.parametrize("name", RATERS)
def test_raters_probabilities_sum_to_one(platform: ScoredPlatform, name: str) -> None:
    found = RATERS[name](platform)
    assert np.allclose(found.sum(axis=1), 1.0)
    assert (found >= 0).all()
    differs = not np.allclose(found, platform.probabilities[HEAD])
    assert differs == (name != "same")
    moved = by_counsellor(found, platform.counsellor, np.random.default_rng(1))
    assert np.allclose(moved.sum(axis=1), 1.0)


def test_labels_are_drawn_with_their_probabilities() -> None:
    truth = np.tile([0.2, 0.5, 0.3], (20_000, 1))
    shares = np.bincount(draw(truth, np.random.default_rng(2))) / len(truth)
    assert shares == pytest.approx([0.2, 0.5, 0.3], abs=0.02)


def test_a_run_is_repeatable_and_measures_unseen_turns(platform: ScoredPlatform) -> None:
    one, again = (learning_curve.simulate(platform, "severity", 300, 3) for _ in range(2))
    assert one == again
    assert one.attainable < 0
    assert one.loss >= one.attainable - 0.02
    if not one.promoted:
        assert (one.loss, one.kappa) == (0.0, 0.0)


def _run(ratings: int, promoted: bool, loss: float, raters: str = "severity") -> Run:
    return Run(raters, ratings, 0, promoted, loss, 0.0, -0.1)


def test_it_pays_from_where_four_fifths_gain_and_keep_gaining() -> None:
    gains = [_run(64, True, -0.1)] * 5 + [_run(128, False, 0.0)] * 5
    assert figures.pays_from(gains, "severity") is None
    gains += [_run(256, True, -0.1)] * 4 + [_run(256, False, 0.0)]
    assert figures.pays_from(gains, "severity") == 256
    assert figures.pays_from(gains, "same") is None
    assert "| stricter | 256 |" in figures.tables(gains)["pays"]


@pytest.fixture
def data(platform: ScoredPlatform) -> VectorData:
    """Raters who judge by the sign of one number of the vectors."""
    labels = 2 * (platform.inputs.fused[:, 0] > 0).numpy().astype(int)
    return learning_curve._data(platform, np.arange(600), labels)


def test_a_low_rank_update_learns_what_the_vectors_say(data: VectorData) -> None:
    chosen = np.arange(600) < 400
    rest = data.rows(~chosen)
    learnt = low_rank.fit(data.rows(chosen), LowRank(4, 1.0))
    right = learnt.predict(rest).argmax(axis=1) == rest.target.argmax(axis=1)
    assert right.mean() > 0.8
    assert (rest.own.argmax(axis=1) == rest.target.argmax(axis=1)).mean() < 0.6


def test_a_strong_prior_leaves_the_network_as_it_is(data: VectorData) -> None:
    learnt = low_rank.fit(data, LowRank(4, 1e9))
    # the shift of the labels has a prior of its own
    moved = np.log(learnt.predict(data)) - np.log(data.own)
    assert np.abs(moved - moved[:, :1] - (moved - moved[:, :1]).mean(axis=0)).max() < 0.2
    first, before = low_rank.layers_of(learnt.network)[0], data.task.layers[0]
    assert torch.allclose(first.weight, before.weight, atol=1e-5)


def test_the_update_is_repeatable_and_of_low_rank(data: VectorData) -> None:
    one, again = (low_rank.fit(data, LowRank(2, 1.0)) for _ in range(2))
    assert np.array_equal(one.predict(data), again.predict(data))
    first, before = low_rank.layers_of(one.network)[0], data.task.layers[0]
    assert torch.linalg.matrix_rank(first.weight - before.weight, tol=1e-4) <= 2


def test_rows_of_weight_zero_teach_nothing(data: VectorData) -> None:
    contradicted = np.arange(600) >= 300
    target = np.where(contradicted[:, None], data.target[:, ::-1], data.target)
    without = replace(data, target=target, weight=(~contradicted).astype(float))
    kept = low_rank.fit(data.rows(~contradicted), LowRank(2, 1.0)).predict(data)
    assert np.allclose(low_rank.fit(without, LowRank(2, 1.0)).predict(data), kept, atol=1e-2)


def test_both_methods_judge_the_same_ratings(platform: ScoredPlatform) -> None:
    one, other = (
        learning_curve.simulate(platform, "severity", 64, 3, method)
        for method in learning_curve.METHODS
    )
    assert (one.attainable, one.seed) == (other.attainable, other.seed)
    assert [one.method, other.method] == ["recalibration", "adapter"]
    row = figures.adapter_tables([one, other])["adapter"].splitlines()[-1]
    assert row.startswith("| stricter | 64 | 1 | ")
    assert figures.adapter_tables([one])["adapter"].count("stricter") == 0
