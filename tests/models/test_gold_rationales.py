"""The rationales of an exported bundle on responses that its training left out."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("torch")

from models.evaluate import gold_rationales
from models.evaluate.exported import Measured
from models.evaluate.predict import HeadOutputs, Predictions, RationaleOutput
from models.evaluate.resampling import interval
from models.fit.calibrate import Calibration
from models.labels import RATIONALE_ORDER


def outputs(gold: list[list[int]], probabilities: list[list[float]]) -> Measured:
    """Responses with these gold masks; the level is above none where any token is probable."""
    items = [
        RationaleOutput(np.array(p), np.array(g), np.arange(len(g)), row)
        for row, (g, p) in enumerate(zip(gold, probabilities, strict=True))
    ]
    logits = np.array([[0.0, 9.0, 0.0] if max(p) > 0.5 else [9.0, 0.0, 0.0] for p in probabilities])
    heads = {name: HeadOutputs(logits, np.eye(3)[logits.argmax(1)]) for name in RATIONALE_ORDER}
    predictions = Predictions(heads, dict.fromkeys(RATIONALE_ORDER, items))
    return Measured(predictions, cast("Any", None), Calibration())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gold_rationales, "interval", functools.partial(interval, resamples=20))


def test_the_headline_leaves_out_responses_without_a_gold_rationale() -> None:
    gold = [[1, 1], [1, 0], [0, 0], [0, 0]]
    found = outputs(gold, [[0.9, 0.1], [0.1, 0.1], [0.1, 0.1], [0.1, 0.1]])
    rows = gold_rationales.rationale_rows(found, ["a", "b", "c", "d"])
    row = rows["emotional_reactions"]
    assert (row["responses"], row["with_gold"], row["always_empty"]) == (4, 2, 0.5)
    assert row["token_f1_gold"]["value"] == pytest.approx((2 / 3 + 0) / 2)
    assert row["token_f1"]["value"] == pytest.approx((2 / 3 + 0 + 1 + 1) / 4)


def test_responses_to_one_post_are_resampled_together() -> None:
    gold = [[1]] * 6
    found = outputs(gold, [[0.9]] * 3 + [[0.1]] * 3)
    one_post = gold_rationales.rationale_rows(found, ["a"] * 6)["explorations"]
    assert one_post["token_f1_gold"]["low"] == one_post["token_f1_gold"]["high"] == 0.5
    two = gold_rationales.rationale_rows(found, list("aaabbb"))["explorations"]["token_f1_gold"]
    assert (two["low"], two["high"]) == (0.0, 1.0)


def test_a_bundle_that_left_nothing_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = SimpleNamespace(training={"split": "everything"})
    monkeypatch.setattr(
        gold_rationales.bundles, "load", lambda _: SimpleNamespace(manifest=manifest)
    )
    with pytest.raises(SystemExit, match="left out no tenth"):
        gold_rationales.main()
