"""Calibration on synthetic outputs; no fold is calibrated with its own labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from models.evaluate.folds import Fold
from models.evaluate.predict import HeadOutputs, Predictions, RationaleOutput
from models.fit import calibrate
from models.fit.calibrate import Calibration, crossfitted, fitted


def drawn(probabilities: np.ndarray, seed: int = 0) -> np.ndarray:
    """Gold labels drawn from the probabilities [n, labels]."""
    chance = np.random.default_rng(seed)
    return (chance.random((len(probabilities), 1)) > probabilities.cumsum(-1)[:, :-1]).sum(-1)


def outputs(probabilities: np.ndarray, seed: int = 0) -> HeadOutputs:
    gold = drawn(probabilities, seed)
    return HeadOutputs(np.log(probabilities), np.eye(probabilities.shape[1])[gold])


def spans(probabilities: list[float], gold: list[int], row: int = 0) -> RationaleOutput:
    """Spans with one sentence per token."""
    return RationaleOutput(np.array(probabilities), np.array(gold), np.arange(len(gold)), row=row)


def test_temperature_and_bias_undo_overconfidence_and_shifted_shares() -> None:
    """Logits are three times too large, and the second label twice as likely as it should be."""
    true = np.random.default_rng(0).dirichlet([1.0, 1.0], size=20_000)
    shifted = np.log(true) + np.array([0.0, np.log(2)])
    given = HeadOutputs(3.0 * shifted, np.eye(2)[drawn(true)])
    temperature, bias = calibrate.fit_temperature_and_bias(given)
    assert temperature == pytest.approx(3.0, rel=0.1)
    assert bias[0] - bias[1] == pytest.approx(np.log(2), abs=0.1)
    assert sum(bias) == pytest.approx(0.0, abs=1e-3)
    result = Calibration({"h": temperature}, {"h": bias})
    np.testing.assert_allclose(result.probabilities("h", given.logits), true, atol=0.03)


def test_levels_are_chosen_by_the_class_weights() -> None:
    chance = np.random.default_rng(1)
    logits = 2.0 * chance.normal(size=(500, 3))
    bias = [0.4, -0.7, 0.3]
    given = Calibration({"h": 1.7}, {"h": bias}, {"h": calibrate.undo_bias(bias)})
    probabilities = given.probabilities("h", logits)
    assert (probabilities.argmax(-1) != logits.argmax(-1)).mean() > 0.05
    np.testing.assert_array_equal(given.labels("h", probabilities), logits.argmax(-1))


def test_a_head_with_few_turns_keeps_its_label_shares() -> None:
    few, many = (outputs(np.tile([0.8, 0.2], (n, 1)), 4) for n in (12, 12_000))
    for given in (few, many):
        given.logits[:] = 0.0
    bias_few, bias_many = (calibrate.fit_temperature_and_bias(g)[1] for g in (few, many))
    assert abs(bias_few[0]) < 0.25
    assert bias_many[0] - bias_many[1] == pytest.approx(np.log(4), abs=0.1)


def test_turns_in_two_views_count_once() -> None:
    once = outputs(np.random.default_rng(5).dirichlet([1.0, 1.0], size=50))
    twice = calibrate.joined([once, once])
    twice.logits, once.logits = 2 * twice.logits, 2 * once.logits
    temperature, bias = calibrate.fit_temperature_and_bias(once)
    assert calibrate.fit_temperature_and_bias(twice, copies=2) == (
        pytest.approx(temperature, abs=1e-3),
        pytest.approx(bias, abs=1e-3),
    )


def test_a_label_threshold_separates_the_labels() -> None:
    probability = np.array([0.05, 0.1, 0.15, 0.3, 0.35, 0.2] * 20)
    gold = probability > 0.25
    assert 0.2 < calibrate.fit_label_threshold(probability, gold) <= 0.3


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        ([1, 1, 1, 1, 1, 1, 1, 1, 1, 0], 0.0),  # nine of ten correct: no abstention
        (
            [0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
            0.2,
        ),  # eight of nine without the least certain; then all correct
        ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0.3),  # never correct: at most three tenths abstain
    ],
)
def test_abstaining_stops_at_nine_right_of_ten_or_at_three_tenths(
    right: list[int], expected: float
) -> None:
    confidence = np.arange(10) / 10
    assert calibrate.fit_abstention(confidence, np.array(right, dtype=bool)) == expected


def test_the_rationale_threshold_separates_the_tokens() -> None:
    items = [spans([0.42, 0.44, 0.2], [1, 1, 0]), spans([0.1, 0.31, 0.43], [0, 0, 1])]
    assert calibrate.fit_threshold(items, [2, 1]) in (0.35, 0.4)


def test_no_rationale_is_shown_for_level_none() -> None:
    assert calibrate.mask(spans([0.9, 0.9], [1, 1]), 0.5, level=0).tolist() == [0, 0]
    assert calibrate.mask(spans([0.9, 0.9], [1, 1]), 0.5, level=1).tolist() == [1, 1]


def test_a_sentence_is_marked_in_full_and_unread_text_never() -> None:
    """Two sentences of three tokens; of the second the encoder read one token."""
    probabilities = np.array([0.9, 0.1, 0.2, 0.6, 0.0, 0.0])
    gold, sentences = np.ones(6, dtype=int), np.array([0, 0, 0, 1, 1, 1])
    item = RationaleOutput(probabilities, gold, sentences, row=0)
    assert item.scores.tolist() == pytest.approx([0.9, 0.9, 0.9, 0.6, 0.0, 0.0])
    assert calibrate.mask(item, 0.7, level=1).tolist() == [1, 1, 1, 0, 0, 0]
    assert calibrate.mask(item, 0.5, level=2).tolist() == [1, 1, 1, 1, 0, 0]


def folds(count: int, seed: int = 0) -> list[Fold]:
    """Folds with a level head, strategies and one rationale each."""
    made = []
    for number in range(count):
        chance = np.random.default_rng(seed + number)
        views = {}
        for view in ("final", "provisional"):
            heads = {
                "explorations": outputs(chance.dirichlet([2.0, 1.0, 1.0], size=300), number),
                "strategy": outputs(chance.dirichlet(np.ones(8), size=300), number),
            }
            items = [spans([0.6, 0.2, 0.7], [1, 0, 1], row=row) for row in range(20)]
            views[view] = Predictions(heads, {"explorations": items})
        made.append(Fold(number, views))
    return made


def poison(fold: Fold) -> Fold:
    """The same outputs with reversed labels, so that any use of them is detected."""
    views = {}
    for view, given in fold.views.items():
        heads = {
            name: HeadOutputs(head.logits, head.target[:, ::-1])
            for name, head in given.heads.items()
        }
        items = [spans([0.6, 0.2, 0.7], [0, 1, 0], row=row) for row in range(20)]
        views[view] = Predictions(heads, {"explorations": items})
    return Fold(fold.number, views)


def test_a_folds_labels_never_affect_its_calibration() -> None:
    plain = folds(3)
    changed = [plain[0], poison(plain[1]), plain[2]]
    before, after = crossfitted(plain), crossfitted(changed)
    assert before[1] == after[1]
    assert before[0] != after[0]
    assert before[2] != after[2]


def test_the_shipped_calibration_is_fitted_on_all_folds() -> None:
    plain = folds(3)
    assert fitted(plain) != fitted([*plain[:2], poison(plain[2])])


def test_a_single_fold_is_unchanged() -> None:
    assert crossfitted(folds(1)) == [Calibration()]


def test_calibration_round_trips_through_its_file(tmp_path: Path) -> None:
    result = fitted(folds(2))
    path = tmp_path / "model" / "calibration.json"
    result.write(path)
    assert Calibration.read(path) == result
    assert set(result.label_thresholds["strategy"]) == set(calibrate.TASKS)
    assert "others" not in calibrate.TASKS


def test_outcome_heads_keep_their_fitted_calibration() -> None:
    known = Calibration({"sympathy": 2.0, "strategy": 3.0}, abstain_below={"sympathy": 0.6})
    result = Calibration({"strategy": 1.5})
    result.copy_from(known, ("sympathy", "engagement"))
    assert result.temperatures == {"strategy": 1.5, "sympathy": 2.0}
    assert result.abstain_below == {"sympathy": 0.6}
    assert result.offsets == {}
