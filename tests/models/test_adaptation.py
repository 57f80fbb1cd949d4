"""The simulated platforms of docs/adaptation.md."""

import numpy as np
import pytest

from models.adaptation import figures, learning_curve
from models.adaptation.learning_curve import Run
from models.adaptation.platform import ScoredPlatform
from models.adaptation.raters import HEAD, RATERS, by_counsellor, draw


@pytest.fixture
def platform() -> ScoredPlatform:
    """Random probabilities instead of scored chats."""
    rng = np.random.default_rng(0)
    strategies = ["question", "reflection_of_feelings", "affirmation_and_reassurance", "others"]
    return ScoredPlatform(
        labels={HEAD: ["none", "weak", "strong"], "strategy": strategies},
        probabilities={
            HEAD: rng.dirichlet(np.ones(3), 600),
            "strategy": rng.dirichlet(np.ones(4), 600),
        },
        session=np.arange(600) // 10,
        offsets={HEAD: (0.0, 0.1, 0.2)},
    )


@pytest.mark.parametrize("name", RATERS)
def test_raters_probabilities_sum_to_one(platform: ScoredPlatform, name: str) -> None:
    found = RATERS[name](platform.probabilities, platform.labels["strategy"])
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
